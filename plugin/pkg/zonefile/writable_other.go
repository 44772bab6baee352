//go:build !unix

package zonefile

// Writable reports whether files can be made in a folder, as far as that is known before it is tried.
func Writable(string) error { return nil }
