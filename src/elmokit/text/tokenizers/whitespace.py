"""Text that is already tokenized."""

from elmokit.text.tokenizers.protocol import ShownTokenizer


class WhitespaceTokenizer(ShownTokenizer):
    """Tokens between white space, one sentence a line."""

    name = "whitespace"
    version = "1"

    def tokenize(self, sentence: str) -> list[str]:
        """Split at Unicode white space, including no-break spaces."""
        return sentence.split()

    def sentences(self, text: str) -> list[list[str]]:
        """Return the tokens of every line that is not blank; only LF and CR end a line."""
        lines = text.replace("\r", "\n").split("\n")
        return [tokens for line in lines if (tokens := line.split())]
