package auto

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// folder is where zone files are, as one directive tells.
type folder struct {
	path     string
	pattern  *regexp.Regexp // of the names of files
	template string         // of origins, as Regexp.Expand has it

	every   time.Duration // how often it is looked at; 0: once
	byMtime bool
	nsec3   bool
	zonemd  bool

	looker
}

// listing is what is in a folder.
type listing struct {
	files    map[string]string // by origin
	warnings []string
	unread   []string // folders that could not be read: what is in them is not known
}

// list looks for zone files in the folder and those in it, in the order of their names. Of two for one origin the first
// counts. Links to files are followed, and one that stands in the folder's own place.
func (f *folder) list() *listing {
	l := &listing{files: map[string]string{}}
	root := f.path
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	walk := func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				l.unread = append(l.unread, path)
			}
			l.warn("error reading %s: %v", path, err)
			return nil
		}
		origin, ok := f.origin(filepath.Base(path))
		if !ok || !isFile(path, entry) {
			return nil
		}
		if name, err := wire.LowerName(origin); err != nil || wire.Text(name) != origin {
			l.warn("File %q is left out: %q is no name of a zone", path, origin)
			return nil
		}
		if first, ok := l.files[origin]; ok {
			l.warn("Multiple zone files match origin %q: using %q instead of %q", origin, first, path)
			return nil
		}
		l.files[origin] = path
		return nil
	}
	if err := filepath.WalkDir(root, walk); err != nil {
		l.warn("error reading %s: %v", root, err)
	}
	return l
}

func (l *listing) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// origin is the zone that a file of that name holds.
func (f *folder) origin(base string) (string, bool) {
	match := f.pattern.FindStringSubmatchIndex(base)
	if match == nil {
		return "", false
	}
	return plugin.Name(f.pattern.ExpandString(nil, f.template, base, match)).Normalize(), true
}

// isFile reports whether an entry is a file, or a link to one.
func isFile(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// knows reports whether what stands at a path now is known.
func (l *listing) knows(path string) bool {
	return !slices.ContainsFunc(l.unread, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
	})
}
