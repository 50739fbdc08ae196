"""Numbers the project holds itself to, written before the first measurement.

Changed only with a reason in the commit.
"""

# Largest absolute difference from PyTorch, float32: encoder output, logits of every step, every K/V tensor.
FAIL_ABOVE = 1e-4
# Above this, plus the rounding noise measured against a float64 reference, a difference is worth a warning.
WARN_ABOVE = 1e-5
# Where a tensor's magnitude exceeds this, differences are scaled down by magnitude / SCALE_FROM.
SCALE_FROM = 10.0
# Two runs that pick different tokens: a tie only when the logits agree within FAIL_ABOVE and the reference's margin
# between both tokens is at most this many times FAIL_ABOVE.
TIE_MARGIN = 2.0
# Beam and greedy scores: largest absolute difference from generate().
SCORE_ABOVE = 1e-4

# --- quality: defaults of golden/<model>/policy.yaml ---
# Sentences that a conversion newly breaks, as a share of those a phenomenon applies to. Of critical ones none may.
NEWLY_BROKEN_SHARE = 0.005
NEWLY_BROKEN_CRITICAL = 0
# Corpus BLEU and chrF: the lower bound of the ratio to the column on the left.
CORPUS_RATIO = 0.99
# One-sided confidence of that bound, and how often the corpus is drawn anew for it.
CORPUS_CONFIDENCE = 0.95
CORPUS_RESAMPLES = 1000
# With fewer sentences, resampling them says little about others.
CORPUS_FEWEST = 100
# Below this corpus score the references say nothing about the model, and a ratio of two scores is noise.
CORPUS_SCORE_FLOOR = 1.0
# Tokens of all translations together, against the column on the left: deletions and loops show here (fault Q06).
LENGTH_RATIO_WITHIN = 0.05
# A translation that is none of the accepted ones: smallest chrF against the nearest of them. It tells unrelated texts,
# below 10, from paraphrases: of a short Chinese sentence one other character can leave 38, another order of words 19.
GOLDEN_CHRF = 15.0

# Quantization. Weights spread over their range as they are after training (largest about 4.5 standard deviations, one
# scale per column) keep about 40 dB at 8 bits, 34 dB at 7, 15 dB at 4 in columns and 20 dB at 4 in blocks of 32; one
# scale for a whole tensor, whose largest value may be 15 standard deviations away, costs about 10 dB more.
# Bits -> signal-to-noise ratio of a dequantized weight below which the tensor is broken, in dB.
WEIGHT_FAIL_BELOW_DB = {8: 25.0, 7: 19.0, 4: 10.0}
# Bits -> the same, below which it is worth a look.
WEIGHT_WARN_BELOW_DB = {8: 30.0, 7: 24.0, 4: 14.0}
# A row of the embedding that shares its scale with all others may be small and coarse; below this it carries no word.
ROW_FAIL_BELOW_DB = 3.0
# Root-mean-square error of a weight, or of a row of it, in steps of its own scale: rounding gives 0.29, clipping and
# ties a little more. Beyond it the stored numbers are not the rounded weights.
STEPS_FAIL_ABOVE = 1.0
# Fewer different integers than this in a matrix that promises 7 or 8 bits: five bits and less.
LEVELS_FEWEST = 33
# Bytes of a quantized set beyond what its quantized weights leave over: a share of the float32 set, and for every
# quantized node its scales, zero points and up to six nodes in its place.
SIZE_SLACK = 0.01
SIZE_PER_NODE = 4096
# Largest activation scale that a calibration of finite values can give, and how far a set's logits may be from those of
# its float32 set, as a signal-to-noise ratio in dB over forced steps. Bits -> dB.
ACTIVATION_SCALE_ABOVE = 1e3
LOGITS_FAIL_BELOW_DB = {8: 10.0, 7: 8.0, 4: 5.0}
# A quantized set may choose another token where the float32 logits of both are close: within this many logits.
FLIP_MARGIN = 2.0
# Calibrated activations on other sentences: share of values outside of the range; how far beyond one end a value may
# reach where the range was taken from extremes, and how little of the range may be used, as shares of the range.
ACTIVATION_CLIPPED_SHARE = 0.02
ACTIVATION_OVERSHOOT = 0.5
ACTIVATION_UNUSED_SHARE = 0.125
# Calibration sets: sentences, share of them that are long, words beyond which a sentence is long.
CALIBRATION_SENTENCES = 150
CALIBRATION_LONG_SHARE = 0.2
CALIBRATION_LONG_WORDS = 30
