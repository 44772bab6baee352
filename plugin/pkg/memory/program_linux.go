package memory

import (
	"bufio"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram has the system unmap the pages of the program's text and constants. Where the system does not tell
// what is mapped, or was told to keep it in memory (mlockall), all stays as it is.
//
// With scarce, the system is to read single pages of the program from now on. Else it reads 128 KiB and more around a
// page that is looked at, which in a small control group takes the place of pages that are in use: with 64 MiB, of
// which Go had 25, 3.5 million pages were read in a minute, and no query was answered any more. By pages it is 3,000.
func releaseProgram(scarce bool) {
	told, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer told.Close()
	for _, s := range unwritten(told, reflect.ValueOf(releaseProgram).Pointer()) {
		// The pages are the file's: they are read from it again when they are looked at.
		unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
		if scarce {
			unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_RANDOM)
		}
	}
}

// span is addresses from one up to another, without that.
type span struct{ from, to uintptr }

// part is a mapping of a file.
type part struct {
	span
	access string
	file   string // device and inode
	clean  bool   // nobody has written to it
}

// unwritten is where the file lies whose text pc is of, without what may be written or was: a loader has relocated it,
// or a debugger set a breakpoint. What is mapped is told in the form of /proc/self/smaps. That is read up to the end
// of the file: the system has to look at all pages for the rest.
func unwritten(smaps io.Reader, pc uintptr) []span {
	var (
		parts   []part // of one file
		program bool   // pc is of that
	)
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		p, ok := readPart(lines.Text())
		if !ok {
			if pages, found := strings.CutPrefix(lines.Text(), "Anonymous:"); found && len(parts) > 0 {
				parts[len(parts)-1].clean = strings.TrimSpace(pages) == "0 kB"
			}
			continue
		}
		if len(parts) > 0 && p.file != parts[0].file {
			if program {
				break
			}
			parts = parts[:0]
		}
		parts = append(parts, p)
		program = program || p.from <= pc && pc < p.to
	}
	var spans []span
	for _, p := range parts {
		if program && p.clean && (p.access == "r-xp" || p.access == "r--p") {
			spans = append(spans, p.span)
		}
	}
	return spans
}

// readPart reads the line of a mapping: addresses, access, offset, device, inode, and what it is of.
func readPart(line string) (part, bool) {
	f := strings.Fields(line)
	if len(f) < 5 {
		return part{}, false
	}
	low, high, _ := strings.Cut(f[0], "-")
	from, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return part{}, false
	}
	to, err := strconv.ParseUint(high, 16, 64)
	if err != nil {
		return part{}, false
	}
	return part{span: span{uintptr(from), uintptr(to)}, access: f[1], file: f[3] + " " + f[4]}, true
}
