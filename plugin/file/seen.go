package file

import (
	"errors"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp"
)

// reading is what is remembered of a zone's file since it was read last.
type reading struct {
	files   []*input // the file, and what it includes
	trouble string   // what was logged because of it
	cut     []*input // of the version that is served, what was perhaps not all there when it was read
	opens   func(path string) (*os.File, error)
}

// input is one file as it was when it was read.
type input struct {
	path  string
	stamp stamp.Stamp
	sum   uint64 // of its octets; only right if all of it was read
	size  int64  // what was read of it
	last  byte   // the last octet of that

	file  *os.File
	began stamp.Stamp // of the file when reading began
	moved bool        // it was changed while it was read
	hash  maphash.Hash
}

// settling is how long after a change a file may be changed again without another time: then its stamp says nothing.
const settling = 50 * time.Millisecond

// contentSeed is for sums of files.
var contentSeed = maphash.MakeSeed()

// add begins reading a file.
func (r *reading) add(path string, f *os.File) *input {
	in := &input{path: path, file: f}
	if info, err := f.Stat(); err == nil {
		in.began = stamp.Of(info)
		if in.stamp = in.began; time.Since(info.ModTime()) < settling {
			in.stamp = stamp.Stamp{}
		}
	}
	in.hash.SetSeed(contentSeed)
	r.files = append(r.files, in)
	return in
}

// openFile opens a file that is looked at again and again. Of a pipe whoever writes to it would be waited for, and all
// other zones and the end of the server would wait with us.
func openFile(path string) (*os.File, error) {
	if err := stamp.NoPipe(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// open is for what a file includes.
func (r *reading) open(path string) (io.ReadCloser, error) {
	f, err := r.opens(path)
	if err != nil {
		r.files = append(r.files, &input{path: path}) // it may come
		return nil, err
	}
	return r.add(path, f), nil
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.file.Read(b)
	in.hash.Write(b[:n])
	in.sum = in.hash.Sum64()
	if in.size += int64(n); n > 0 {
		in.last = b[n-1]
	}
	if err != nil && err != io.EOF {
		in.stamp = stamp.Stamp{} // the disk's, or the system's: it may pass, and the file is read again
	}
	return n, err
}

// Close implements io.Closer.
func (in *input) Close() error {
	if info, err := in.file.Stat(); err == nil {
		in.moved = stamp.Of(info) != in.began
	}
	return in.file.Close()
}

// unchanged reports whether no file has changed since the reading, by their stamps, and else when the one was changed that
// was seen to be. It is an error if the file at path, which is the zone's now, cannot be looked at.
func (r *reading) unchanged(path string) (same bool, changed time.Time, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, time.Time{}, err
	}
	if len(r.files) == 0 || r.files[0].path != path || r.files[0].stamp != stamp.Of(info) {
		return false, info.ModTime(), nil
	}
	for _, in := range r.files[1:] {
		if s := stamp.At(in.path); s == (stamp.Stamp{}) || in.stamp != s {
			return false, s.Changed(), nil
		}
	}
	return true, time.Time{}, nil
}

// end notes what was perhaps not all there: what ends within a line, or was changed while it was read.
func (r *reading) end() {
	for _, in := range r.files {
		if in.moved || in.size > 0 && in.last != '\n' {
			r.cut = append(r.cut, in)
		}
	}
}

// grown reports whether a file was read before all of it was there, and there is more of it now.
func (r *reading) grown(path string) bool {
	return len(r.cut) > 0 && len(r.files) > 0 && r.files[0].path == path && slices.ContainsFunc(r.cut, (*input).grown)
}

func (in *input) grown() bool {
	f, err := openFile(in.path)
	if err != nil {
		return false
	}
	defer f.Close()
	var h maphash.Hash
	h.SetSeed(contentSeed)
	if _, err := io.CopyN(&h, f, in.size); err != nil {
		return in.moved && errors.Is(err, io.EOF)
	}
	if h.Sum64() != in.sum {
		return in.moved
	}
	n, _ := f.Read(make([]byte, 1))
	return n > 0
}

// same reports whether the files' contents are as they were, and remembers their stamps then.
func (r *reading) same(path string) bool {
	if len(r.files) == 0 || r.files[0].path != path {
		return false
	}
	var now reading
	for _, in := range r.files {
		f, err := openFile(in.path)
		if err != nil {
			return false
		}
		is := now.add(in.path, f)
		_, err = io.Copy(io.Discard, is)
		is.Close()
		if err != nil || is.sum != in.sum {
			return false
		}
	}
	r.files = now.files
	return true
}
