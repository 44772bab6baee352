//go:build !unix

package secondary

// lockDir does nothing where folders cannot be locked as POSIX systems do it: there no process takes another one's place.
func lockDir(string) (unlock func(), err error) { return func() {}, nil }
