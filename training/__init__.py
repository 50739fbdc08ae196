"""The recipe of the embedded model: corpus, tokenizer, training, evaluation, model card. Nothing else imports it."""
