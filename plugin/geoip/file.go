package geoip

import (
	"io"
	"os"
)

// readFile is what is in a file now, and how to give its memory back. A file that is mapped would change when it is written
// over, and end the process when it is cut short.
func readFile(path string) (b []byte, free func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	b, free = room(int(max(info.Size(), 1)))
	if _, err := io.ReadFull(f, b[:info.Size()]); err != nil {
		free()
		return nil, nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return b[:info.Size()], free, nil
}
