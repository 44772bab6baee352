package secondary

import "errors"

// transferError is the error of a transfer, where the primary had told its serial: the log tells it from one of a
// primary that did not.
type transferError struct{ error }

func (e transferError) Unwrap() error { return e.error }

// isTransfer reports whether a transfer failed.
func isTransfer(err error) bool { return errors.As(err, new(transferError)) }
