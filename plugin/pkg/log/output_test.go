package log_test

import (
	"bufio"
	"fmt"
	golog "log"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log"
)

// piped makes a pipe the output of the log.
func piped(t *testing.T) (reader *os.File) {
	t.Helper()
	reader, _ = pipe(t)
	return reader
}

// pipe is piped, with the end that is written to.
func pipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old, flags := golog.Writer(), golog.Flags()
	log.SetOutput(writer)
	golog.SetFlags(0)
	t.Cleanup(func() {
		reader.Close() // whoever writes learns it
		log.Sync()
		golog.SetOutput(old)
		golog.SetFlags(flags)
		writer.Close()
	})
	return reader, writer
}

// Those who log do not wait for an output that takes nothing for a while: what is too much is lost, and that is told.
// All lines before and behind arrive, in their order.
func TestOutputThatTakesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether there is room is known on Linux only")
	}
	reader := piped(t)
	text := strings.Repeat("x", 200)
	slowest, began := time.Duration(0), time.Now()
	const lines = 20000 // 4 MiB
	for i := range lines {
		at := time.Now()
		if i%100 == 0 {
			log.Infof("line %d %s", i, text)
		} else {
			log.Line(fmt.Appendf(nil, "[INFO] line %d %s", i, text))
		}
		slowest = max(slowest, time.Since(at))
	}
	if took := time.Since(began); took > 10*time.Second || slowest > 3*time.Second {
		t.Errorf("all took %v, and one of them %v", took, slowest)
	}
	log.Sync() // gives up
	in := bufio.NewScanner(reader)
	next, last := 0, -1
	told := 0
	for told == 0 && in.Scan() {
		var i int
		if _, err := fmt.Sscanf(in.Text(), "[WARNING] Lines of the log were lost, as nobody took them for more than 1s: %d", &i); err == nil {
			told = i
		} else if _, err := fmt.Sscanf(in.Text(), "[INFO] line %d", &i); err != nil || i <= last {
			t.Fatalf("%q behind line %d", in.Text(), last)
		} else {
			last = i
			next++
		}
	}
	if told < lines/2 || told+next != lines {
		t.Errorf("%d lines were lost, and %d came, of %d", told, next, lines)
	}
	log.Info("after that")
	if !in.Scan() || in.Text() != "[INFO] after that" {
		t.Errorf("then came %q", in.Text())
	}
}

// Nor does who prints, such as a process that begins. Lines before and behind come in their order.
func TestPrintDoesNotWait(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether there is room is known on Linux only")
	}
	reader, writer := pipe(t)
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	log.Info("before")
	in := bufio.NewReader(reader)
	if line, err := in.ReadString('\n'); err != nil || line != "[INFO] before\n" {
		t.Fatalf("%q, %v", line, err)
	}
	os.Stdout = writer
	fill := strings.Repeat("x", 4095) + "\n"
	os.Stdout.SetWriteDeadline(time.Now().Add(150 * time.Millisecond)) // longer than what is known of the room holds
	filled := 0
	for err := error(nil); err == nil; {
		var n int
		n, err = os.Stdout.WriteString(fill)
		filled += n
	}
	os.Stdout.SetWriteDeadline(time.Time{})
	printed := make(chan struct{})
	go func() {
		log.Print("one\ntwo\n")
		log.Info("behind")
		close(printed)
	}()
	select {
	case <-printed:
	case <-time.After(10 * time.Second):
		t.Error("it waits for a reader")
	}
	if _, err := in.Discard(filled); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one\n", "two\n", "[INFO] behind\n"} {
		if line, err := in.ReadString('\n'); err != nil || line != want {
			t.Errorf("%q, %v, want %q", line, err, want)
		}
	}
	<-printed
}

// A reader that is slow gets all.
func TestSlowReader(t *testing.T) {
	reader := piped(t)
	const lines = 5000
	go func() {
		for i := range lines {
			log.Line(fmt.Appendf(nil, "line %d %s", i, strings.Repeat("x", 1000)))
		}
		log.Sync()
	}()
	in := bufio.NewReaderSize(reader, 4096)
	for i := range lines {
		if i%50 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		line, err := in.ReadString('\n')
		if want := fmt.Sprintf("line %d x", i); err != nil || !strings.HasPrefix(line, want) {
			t.Fatalf("%.20q, %v, want %s", line, err, want)
		}
	}
}

// With a reader that is there, a line has been written when the call that logs it returns.
func TestLinesAreThere(t *testing.T) {
	reader := piped(t)
	got := make([]byte, 100)
	for i := range 1000 {
		want := fmt.Sprintf("[INFO] line %d\n", i)
		log.Infof("line %d", i)
		if n, err := reader.Read(got); string(got[:n]) != want || err != nil {
			t.Fatalf("%q, %v, want %q", got[:n], err, want)
		}
	}
}

// Lines that come one by one fill a pipe that nobody reads, and nobody waits, whatever their length.
func TestRoomIsNotOverrated(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether there is room is known on Linux only")
	}
	for _, octets := range []int{10, 1500, 3000, 4095, 4097, 7000} {
		t.Run(fmt.Sprint(octets), func(t *testing.T) {
			piped(t)
			line := strings.Repeat("x", octets)
			for range 2*65536/octets + 20 {
				began := time.Now()
				log.Line([]byte(line))
				log.Flush()
				if took := time.Since(began); took > 900*time.Millisecond {
					t.Fatalf("a line took %v", took)
				}
			}
		})
	}
}

// fullDisk takes what it has room for.
type fullDisk struct {
	mu   sync.Mutex
	room int
	has  []byte
}

func (d *fullDisk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(p), d.room)
	d.has, d.room = append(d.has, p[:n]...), d.room-n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (d *fullDisk) set(room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

func (d *fullDisk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.has)
}

// What a disk that is full does not take is counted, and told when it takes lines again. These begin a line of their own.
func TestFullDisk(t *testing.T) {
	piped(t)
	full := &fullDisk{room: 1 << 20}
	golog.SetOutput(full)
	log.Line([]byte("[INFO] before"))
	log.Sync()
	full.set(6)
	for range 3 {
		log.Line([]byte("[INFO] lost"))
		log.Sync()
	}
	full.set(1 << 20)
	log.Line([]byte("[INFO] after"))
	log.Sync()
	const told = "[WARNING] Lines of the log were lost, as they could not be written: "
	eventually.Holds(t, "what was lost is told", func() bool { return strings.Contains(full.text(), told+"3\n") })
	var got []string
	for line := range strings.Lines(full.text()) {
		if line != "\n" && !strings.HasPrefix(line, told) { // as of tests before
			got = append(got, strings.TrimSpace(line))
		}
	}
	if want := []string{"[INFO] before", "[INFO]", "[INFO] after"}; !slices.Equal(got, want) {
		t.Errorf("the disk has %q, want %q", got, want)
	}
}
