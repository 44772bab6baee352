package log

import "strings"

// OneLine is the text of err in a single line, in which those that errors.Join has put together stand behind each
// other. A line of the log that goes on in the next one has no level there, and who collects lines takes it for two.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
