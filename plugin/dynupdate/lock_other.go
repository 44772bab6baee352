//go:build !unix

package dynupdate

// lockFile does nothing where files cannot be locked as POSIX systems do it: whoever runs two servers on one database
// is on his own.
func lockFile(string) (unlock func(), ok bool, err error) { return func() {}, true, nil }
