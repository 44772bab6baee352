package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// object is a line that has to be a JSON object.
func object(t *testing.T, line string) map[string]any {
	t.Helper()
	o := map[string]any{}
	if err := json.Unmarshal([]byte(line), &o); err != nil || o["time"] == nil || o["level"] == nil || o["msg"] == nil {
		t.Fatalf("%q: %v", line, err)
	}
	return o
}

// All that a server prints with -log-format=json is objects: the zones at the start, plugins, queries under load, their errors, and caddy's
// words at the end.
func TestLogFormatJSON(t *testing.T) {
	folder, addr := t.TempDir(), loopback.Addr()
	_, port, _ := strings.Cut(addr, ":")
	corefile := "good.example:" + port + " {\nbind 127.0.0.1\nlog\nwhoami\n}\n" +
		"bad.example:" + port + " {\nbind 127.0.0.1\nlog\nerrors\nforward . " + loopback.Addr() + " {\nmax_connect_attempts 1\n}\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "Corefile"), []byte(corefile), 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Dir, program.Env = folder, append(os.Environ(), asProgram+"=-log-format=json")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for {
		line, ok := <-lines
		if !ok {
			t.Fatal("it ended")
		}
		if o := object(t, line); strings.HasPrefix(o["msg"].(string), "compatible with ") {
			break // the last line of the start
		}
	}
	const clients, each = 8, 50
	var asked sync.WaitGroup
	for i := range clients {
		asked.Go(func() {
			for n := range each {
				zone := "good"
				if n%10 == 0 {
					zone = "bad"
				}
				m := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.c%d.%s.example.", n, i, zone), dns.TypeA)
				if _, _, err := (&dns.Client{Timeout: 10 * time.Second}).Exchange(m, addr); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asked.Wait()
	program.Process.Signal(os.Interrupt)
	rcodes, errs, caddys := map[any]int{}, 0, 0
	for line := range lines {
		switch o := object(t, line); {
		case o["qname"] != nil:
			rcodes[o["rcode"]]++
		case o["plugin"] == "errors" && o["level"] == "ERROR":
			errs++
		case strings.Contains(o["msg"].(string), "SIGINT"):
			caddys++
		}
	}
	program.Wait()
	if rcodes["NOERROR"] != clients*each*9/10 || rcodes["SERVFAIL"] != clients*each/10 || errs != clients*each/10 || caddys != 1 {
		t.Errorf("queries %v, errors %d, lines of caddy %d", rcodes, errs, caddys)
	}
}

// A Corefile that cannot be served is an object on standard error. What people ask for stays text.
func TestLogFormat(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Corefile"), []byte(". {\nnonsense\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run(t, folder, "", "-log-format=json")
	if o := object(t, stderr); stdout != "" || status != 1 || o["level"] != "FATAL" || !strings.Contains(o["msg"].(string), "Corefile:2 - ") {
		t.Errorf("%q %q %d", stdout, stderr, status)
	}
	_, text, _ := run(t, folder, "", "-log-format=text")
	if without, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(without, "Corefile:2 - ") {
		t.Errorf("as text: %q", text)
	}
	for _, args := range [][]string{{"-version"}, {"-plugins"}, {"-validate"}} {
		want, wantErr, wantStatus := run(t, folder, "", args...)
		got, gotErr, gotStatus := run(t, folder, "", append(args, "-log-format=json")...)
		if got != want || gotErr != wantErr || gotStatus != wantStatus {
			t.Errorf("%v: got %q %q %d", args, got, gotErr, gotStatus)
		}
	}
	if _, stderr, status := run(t, folder, "", "-log-format=xml"); status != 2 || !strings.Contains(stderr, "must be text or json") {
		t.Errorf("%q %d", stderr, status)
	}
}
