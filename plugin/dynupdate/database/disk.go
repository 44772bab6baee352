package database

import (
	"io"
	"os"
	"runtime"

	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

// Medium is what is needed of an open file.
type Medium interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Disk is what is needed of the disk that files are on.
type Disk struct {
	// Open opens a file that is there, or makes one that only its owner reads.
	Open func(path string, create bool) (Medium, error)
	// Rename has a file take the place of another one in its folder.
	Rename func(from, to string) error
	// SyncFolder makes the name of a file durable.
	SyncFolder func(path string) error
	// KeepsNames says that a file which is open may keep its name.
	KeepsNames bool
}

// TheDisk is the system's. Only tests change it, for disks that fail.
var TheDisk = Disk{
	Open:       func(path string, create bool) (Medium, error) { return openFile(path, create) },
	Rename:     rename,
	SyncFolder: zonefile.SyncFolder,
	KeepsNames: runtime.GOOS == "windows",
}

func openFlags(create bool) int {
	if create {
		return os.O_RDWR | os.O_CREATE | os.O_TRUNC
	}
	return os.O_RDWR
}

// Beside is where a database is written before it takes the place of the one at path.
func Beside(path string) string { return path + ".new" }
