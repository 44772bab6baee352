package dynupdate

import "os"

// isAt reports whether a file that has been locked is what stands at path: the one who had it locked before may have put
// another file in its place.
func isAt(f *os.File, path string) (bool, error) {
	was, err := f.Stat()
	if err != nil {
		return false, err
	}
	is, err := os.Stat(path)
	return err == nil && os.SameFile(is, was), err
}
