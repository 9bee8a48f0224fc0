from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()
training_args.model_init_kwargs = {"dtype": model_args.dtype}
SFTTrainer(model=model_args.model_name_or_path, args=training_args).train()
