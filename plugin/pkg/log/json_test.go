package log_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	golog "log"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// inJSON makes lines JSON objects in a buffer until the test ends.
func inJSON(t *testing.T, out *slow) {
	t.Helper()
	capture(t) // to be as before at the end
	log.SetJSON(out)
	t.Cleanup(func() { log.SetJSON(nil) })
}

// objects are the lines of a text, each of which has to be one object.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		o := map[string]any{}
		if err := json.Unmarshal([]byte(line), &o); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q: %v", line, err)
		}
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(o["time"])); err != nil || time.Since(at) > time.Hour {
			t.Errorf("%q: %v", line, err)
		}
		delete(o, "time")
		all = append(all, o)
	}
	return all
}

func TestJSONLines(t *testing.T) {
	out := new(slow)
	inJSON(t, out)
	debugging(t, true)
	told := listen(t, "json")
	p := log.NewWithPlugin("example")
	log.Debugf("%d", 1)
	log.Info("a\n\"b\"")
	p.Warning("a")
	p.Errorf("%s", "plugin/other: \xff")
	golog.Print("[ERROR] of others")
	golog.Printf("two\nlines")
	log.Line([]byte("[INFO] of a query"))
	log.Record("of another", slog.Float64("seconds", 0.5), slog.Any("none", nil))
	log.Print("one\ntwo\n")
	log.Sync()
	want := []string{
		`{"level":"DEBUG","msg":"1"}`,
		`{"level":"INFO","msg":"a\n\"b\""}`,
		`{"level":"WARN","msg":"a","plugin":"example"}`,
		`{"level":"ERROR","msg":"plugin/other: \ufffd","plugin":"example"}`,
		`{"level":"INFO","msg":"[ERROR] of others"}`,
		`{"level":"INFO","msg":"two\nlines"}`,
		`{"level":"INFO","msg":"of a query"}`,
		`{"level":"INFO","msg":"of another","none":null,"seconds":0.5}`,
		`{"level":"INFO","msg":"one"}`,
		`{"level":"INFO","msg":"two"}`,
	}
	got := objects(t, out.String())
	for i, o := range got {
		b, _ := json.Marshal(o)
		w := map[string]any{}
		if i < len(want) {
			json.Unmarshal([]byte(want[i]), &w)
		}
		if as, _ := json.Marshal(w); !bytes.Equal(as, b) {
			t.Errorf("got  %s\nwant %s", b, as)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	if s := strings.Join(told.lines, "\n"); s != "warning|plugin/example: |a\nerrorf|plugin/example: |plugin/other: \xff" {
		t.Errorf("listeners were told %q", s)
	}
}

// Lines of many do not mix, whatever way they take, to an output that is slow.
func TestJSONLinesUnderLoad(t *testing.T) {
	out := &slow{pause: 100 * time.Microsecond}
	inJSON(t, out)
	p := log.NewWithPlugin("example")
	const writers, lines = 8, 500
	long := strings.Repeat("x\"\n", 300) + "."
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range lines {
				switch text := fmt.Sprintf("%d %d %s", w, i, long); i % 4 {
				case 0:
					p.Error(text)
				case 1:
					golog.Print(text)
				case 2:
					log.Line([]byte(text))
				case 3:
					log.Record(text, slog.Int("n", i))
				}
			}
		})
	}
	wg.Wait()
	log.Sync()
	next := [writers]int{}
	for _, o := range objects(t, out.String()) {
		var w, i int
		if _, err := fmt.Sscanf(o["msg"].(string), "%d %d", &w, &i); err != nil || next[w] != i || !strings.HasSuffix(o["msg"].(string), long) {
			t.Fatalf("%v: want line %d, %v", o, next[w], err)
		}
		next[w]++
	}
	for w, n := range next {
		if n != lines {
			t.Errorf("%d lines of writer %d", n, w)
		}
	}
}

// The last line of a process that ends by it is written.
func TestJSONFatal(t *testing.T) {
	if os.Getenv("LOG_TEST_FATAL_JSON") != "" {
		log.SetJSON(os.Stdout)
		log.Line([]byte("before"))
		log.NewWithPlugin("example").Fatalf("at %s", "last")
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestJSONFatal$")
	program.Env = append(os.Environ(), "LOG_TEST_FATAL_JSON=1")
	b, err := program.Output()
	got := objects(t, string(b))
	if err == nil || program.ProcessState.ExitCode() != 1 || len(got) != 2 || got[0]["msg"] != "before" || got[1]["msg"] != "at last" ||
		got[1]["level"] != "FATAL" || got[1]["plugin"] != "example" {
		t.Errorf("%v %s", err, b)
	}
}
