package wire

// Options is the EDNS options of the reply, code, length and data one after the other: those of a message that was
// loaded, and those that plugins added. It is only to be read, and only until the next change.
func (w *Reply) Options() []byte { return w.options }
