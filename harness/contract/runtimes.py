from dataclasses import dataclass
@dataclass(frozen=True)
class Runtime:
    minor: str
    max_ir: int
    max_opset: int
    lacks: tuple = ()
    lacks_contrib: tuple = ()
    def is_missing(self, domain, op): return op in (self.lacks if domain in ("", "ai.onnx") else self.lacks_contrib)
def runtime(v): return Runtime("1.14", 8, 18)
