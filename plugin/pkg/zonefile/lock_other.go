//go:build !unix

package zonefile

// LockFolder does nothing where folders cannot be locked as POSIX systems do it: there no process takes another one's
// place.
func LockFolder(string) (unlock func(), err error) { return func() {}, nil }
