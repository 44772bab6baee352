package memory

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mapped is what /proc/self/smaps has of a program at 0x400000, with what is put for the octets written to each part.
func mapped(file string, written ...int) string {
	var b strings.Builder
	for i, access := range []string{"r-xp", "r--p", "rw-p"} {
		fmt.Fprintf(&b, "%08x-%08x %s %08x fe:00 9977934                            %s\n", 0x400000+i<<20, 0x500000+i<<20, access, i<<20, file)
		fmt.Fprintf(&b, "Size:               1024 kB\nRss:                 640 kB\nAnonymous:      %8d kB\nVmFlags: rd ex mr mw me\n", written[i])
	}
	return b.String()
}

const (
	before = "00010000-00020000 r-xp 00000000 fe:00 77 /lib/before.so\nAnonymous:             0 kB\n"
	after  = "c000000000-c000400000 rw-p 00000000 00:00 0\nRss:                1024 kB\nAnonymous:          1024 kB\n" +
		"7f0000000000-7f0000100000 r-xp 00000000 fe:00 78 /lib/after.so\nAnonymous:             0 kB\n"
)

func TestUnwritten(t *testing.T) {
	text, constants := span{0x400000, 0x500000}, span{0x500000, 0x600000}
	for name, tt := range map[string]struct {
		smaps string
		want  []span
	}{
		"a program":                           {mapped("/coredns", 0, 0, 600), []span{text, constants}},
		"variables that nobody has written":   {mapped("/coredns", 0, 0, 0), []span{text, constants}},
		"relocated constants":                 {mapped("/coredns", 0, 4, 600), []span{text}},
		"a breakpoint":                        {mapped("/coredns", 4, 0, 600), []span{constants}},
		"a name with spaces":                  {mapped("/opt/name server/coredns (deleted)", 0, 0, 8), []span{text, constants}},
		"among others":                        {before + mapped("/coredns", 0, 0, 600) + after, []span{text, constants}},
		"a system that tells of no anonymous": {strings.ReplaceAll(mapped("/coredns", 0, 0, 0), "Anonymous", "Unknown"), nil},
		"others only":                         {before + after, nil},
		"nothing":                             {"", nil},
	} {
		if got := unwritten(strings.NewReader(tt.smaps), 0x400010); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %x, want %x", name, got, tt.want)
		}
	}
}

// rare are constants of the program that nobody looks at: 4 MiB.
const (
	rare16B  = "rarely looked at"
	rare128B = rare16B + rare16B + rare16B + rare16B + rare16B + rare16B + rare16B + rare16B
	rare1K   = rare128B + rare128B + rare128B + rare128B + rare128B + rare128B + rare128B + rare128B
	rare8K   = rare1K + rare1K + rare1K + rare1K + rare1K + rare1K + rare1K + rare1K
	rare64K  = rare8K + rare8K + rare8K + rare8K + rare8K + rare8K + rare8K + rare8K
	rare512K = rare64K + rare64K + rare64K + rare64K + rare64K + rare64K + rare64K + rare64K
	rare     = rare512K + rare512K + rare512K + rare512K + rare512K + rare512K + rare512K + rare512K
)

// TestSettle sees such a part of the program leave the memory, and once more if it was looked at soon after.
func TestSettle(t *testing.T) {
	told, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skipf("%v: mount /proc", err)
	}
	defer told.Close()
	program := unwritten(told, reflect.ValueOf(releaseProgram).Pointer())
	if len(program) == 0 {
		t.Fatal("the program was not found")
	}
	lookAt(t, program)
	before := inFiles(t)
	if at := before % len(rare); before < len(rare) || rare[at] != rare16B[at%16] { // which has the constants in the program
		t.Fatalf("%d octets of files are in memory with %d of constants", before, len(rare))
	}
	without := before - len(rare)*3/4
	Settle()
	if now := inFiles(t); now > without {
		t.Errorf("%d octets of files are in memory, and were %d", now, before)
	}
	Settle()
	lookAt(t, program)
	for deadline := time.Now().Add(time.Minute); inFiles(t) > without; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d octets of files are in memory, and were %d", inFiles(t), before)
		}
	}
}

// TestSettleInLittleMemory sees that the program is read by single pages once the memory is limited.
func TestSettleInLittleMemory(t *testing.T) {
	if Limit() == math.MaxInt64 {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	}
	Settle()
	told, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("%v: mount /proc", err)
	}
	pc, within := reflect.ValueOf(releaseProgram).Pointer(), false
	for line := range strings.Lines(string(told)) {
		if p, ok := readPart(line); ok {
			within = p.from <= pc && pc < p.to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && within {
			if !slices.Contains(strings.Fields(flags), "rr") {
				t.Errorf("the flags of the program's text are%s and not rr (random reads)", flags)
			}
			return
		}
	}
	t.Fatal("the flags of the program's text were not found")
}

// lookAt has the system bring all pages of the spans.
func lookAt(t *testing.T, spans []span) {
	t.Helper()
	for _, s := range spans {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_POPULATE_READ); errno != 0 {
			t.Skipf("pages can't be had (%v): Linux 5.14 or later has MADV_POPULATE_READ", errno)
		}
	}
}

// inFiles is the octets of files that the process has in memory.
func inFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("no RssFile: %v", err)
	}
	return kib << 10
}
