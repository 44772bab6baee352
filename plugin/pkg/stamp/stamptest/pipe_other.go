//go:build !unix

package stamptest

import "errors"

// makePipe fails: the system has no pipes with names.
func makePipe(string) error { return errors.ErrUnsupported }
