from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

model = AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-xl", dtype="bfloat16")
training = Seq2SeqTrainingArguments("out", bf16=True, per_device_train_batch_size=4, optim="adafactor")
Seq2SeqTrainer(model=model, args=training).train()
