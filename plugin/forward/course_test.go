package forward

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

var update = flag.Bool("update", false, "write what the scripts of testdata/course bring about into them")

// script is a course with a view that the lines of a script make.
type script struct {
	course
	isDown map[int]bool
	lot    int
	slow   time.Duration
}

func (s *script) down(up int) bool           { return s.isDown[up] }
func (s *script) chance(n int) int           { return s.lot % n }
func (s *script) patience(int) time.Duration { return s.slow }
func (s *script) Took(int) time.Duration     { return 0 }

// Each script tells a story line by line; behind each event stands what the course says to it (> ...).
func TestCourseScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/course/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, text)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, text) {
				t.Errorf("%s: got\n%s", file, got)
			}
		})
	}
}

func play(t *testing.T, text []byte) []byte {
	s := &script{isDown: map[int]bool{}}
	s.view = s
	var out bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if ev, ok := s.event(t, words); ok {
			fmt.Fprintln(&out, ">", describe(s.step(ev)))
		} else if !s.set(words) {
			t.Fatalf("unknown line %q", line)
		}
	}
	return out.Bytes()
}

// set makes the course, or changes what it sees.
func (s *script) set(words []string) bool {
	number := func() int { n, _ := strconv.Atoi(words[1]); return n }
	switch words[0] {
	case "order": // a new query
		s.course = course{rules: s.rules, stream: s.stream, whole: s.whole, handOn: s.handOn, view: s}
		for _, w := range words[1:] {
			n, _ := strconv.Atoi(w)
			s.order = append(s.order, n)
		}
	case "attempts":
		s.rules.attempts = number()
	case "down":
		s.isDown[number()] = true
	case "up":
		s.isDown[number()] = false
	case "chance":
		s.lot = number()
	case "tcp":
		s.stream = true
	case "quic":
		s.whole = true
	case "force_tcp":
		s.rules.forceTCP = true
	case "prefer_udp":
		s.rules.preferUDP = true
	case "failfast":
		s.rules.failfast = true
	case "failover":
		return addRcodes(&s.rules.failover, words[1:]) == nil
	case "next":
		return addRcodes(&s.rules.next, words[1:]) == nil
	case "next_on_nodata":
		s.rules.nextOnNoData = true
	case "hedge":
		s.rules.hedge = true
	case "slow":
		s.slow, _ = time.ParseDuration(words[1])
	case "chained":
		s.handOn = true
	default:
		return false
	}
	return true
}

// event reads "begin 0s", "reply 1s NOERROR [empty] [tc]", "fail 1s network|odd|local|ours TEXT"; each may end in "late" and "gone".
func (s *script) event(t *testing.T, words []string) (ev event, ok bool) {
	kinds := map[string]eventKind{"begin": begun, "reply": replied, "fail": failed}
	ev.kind, ok = kinds[words[0]]
	if !ok {
		return ev, false
	}
	var err error
	if ev.at, err = time.ParseDuration(words[1]); err != nil {
		t.Fatal(err)
	}
	words = words[2:]
	if n := len(words); n > 0 && words[n-1] == "gone" {
		ev.gone, words = true, words[:n-1]
	}
	if n := len(words); n > 0 && words[n-1] == "late" {
		ev.late, words = true, words[:n-1]
	}
	switch ev.kind {
	case replied:
		ev.rcode = dns.StringToRcode[words[0]]
		for _, w := range words[1:] {
			ev.empty = ev.empty || w == "empty"
			ev.tc = ev.tc || w == "tc"
		}
	case failed:
		ev.failure = map[string]failureKind{"network": network, "odd": odd, "local": local, "ours": ours}[words[0]]
		ev.err = errors.New(strings.Join(words[1:], " "))
	}
	return ev, true
}

func describe(a action) string {
	var b strings.Builder
	switch a.do {
	case ask:
		fmt.Fprintf(&b, "ask %d", a.to)
		if a.stream {
			b.WriteString(" over tcp")
		}
		if a.after > 0 {
			fmt.Fprintf(&b, " after %s", a.after)
		}
		if a.second >= 0 {
			fmt.Fprintf(&b, ", %d too after %s", a.second, a.slow)
		}
	case answer:
		b.WriteString("answer")
	case handOn:
		b.WriteString("hand on")
	case fail:
		fmt.Fprintf(&b, "%s: %v", dns.RcodeToString[a.rcode], a.err)
	}
	if a.probe >= 0 {
		fmt.Fprintf(&b, ", probe %d", a.probe)
	}
	if a.broken {
		b.WriteString(", all are down")
	}
	return b.String()
}

// A course never waits for ever nor asks beyond its limits, whatever happens.
func FuzzCourse(f *testing.F) {
	f.Add([]byte{2, 4, 0, 1, 2, 3, 4, 5, 6, 7})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 3 {
			return
		}
		s := &script{isDown: map[int]bool{}}
		s.view = s
		for i := range int(b[0] % 5) {
			s.order = append(s.order, i)
		}
		s.rules.attempts = int(b[1] % 6)
		s.rules.failfast, s.rules.preferUDP = b[2]&1 != 0, b[2]&2 != 0
		s.rules.failover = rcodes(b[2]) & 0xFE
		s.handOn, s.rules.nextOnNoData = b[2]&4 != 0, b[2]&8 != 0
		s.rules.hedge, s.slow = b[2]&16 != 0, time.Duration(b[2]&32)
		ev := event{kind: begun}
		asks := 0
		for _, c := range b[3:] {
			a := s.step(ev)
			if a.do != ask {
				if a.do == fail && a.err == nil {
					t.Fatal("a failure without an error")
				}
				return
			}
			if a.second >= len(s.order) || a.second >= 0 && !s.rules.hedge {
				t.Fatalf("ask %d, and %d too", a.to, a.second)
			}
			if asks++; a.to < 0 || a.to >= len(s.order) || s.rules.attempts > 0 && asks > (s.rules.attempts+1)*2*len(s.order) {
				t.Fatalf("ask %d is of %d", asks, a.to)
			}
			if ev.at >= overall || ev.gone {
				if ev.kind != replied { // the same upstream once more over TCP is bounded by its own deadline
					t.Fatal("asks although the time is over")
				}
			}
			s.lot = int(c)
			s.isDown[int(c)%5] = c&0x80 != 0
			ev = event{kind: replied, at: ev.at + time.Duration(c)*time.Millisecond, rcode: int(c >> 4 & 7), tc: c&8 != 0, late: a.second >= 0 && c&2 != 0}
			if c&1 != 0 {
				ev.kind, ev.err, ev.failure = failed, errors.New("x"), failureKind(c>>1&3)
			}
		}
	})
}

func BenchmarkCourse(b *testing.B) {
	s := &script{}
	s.view = s
	s.order = []int{0, 1}
	b.ReportAllocs()
	for b.Loop() {
		s.course.place = 0
		s.step(event{kind: begun})
		if a := s.step(event{kind: replied}); a.do != answer {
			b.Fatal(a)
		}
	}
}
