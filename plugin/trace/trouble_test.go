package trace

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/test"
)

// That batches fail is told at once, and then from time to time, in one line each.
func TestTroubleIsToldSeldom(t *testing.T) {
	out := logtest.Capture(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html>\r\n<h1>Bad Gateway</h1>\r\n</html>\n")
	}))
	defer page.Close()
	send := newSender(exporterOf(t, "zipkin", page.URL), 1000, 1, time.Millisecond)
	send.start()
	tr := &trace{Next: chain(nil), tracer: &tracer{sender: send}, every: 1, tags: slashTags}
	for range 100 {
		tr.ServeDNS(context.Background(), &test.ResponseWriter{}, query())
	}
	send.stop()
	const first = "502 Bad Gateway: <html> <h1>Bad Gateway</h1> </html>"
	if n := strings.Count(out.String(), "failed to send the request: "); n < 1 || n > 4 || !strings.Contains(out.String(), first) {
		t.Errorf("told %d times of batches that fail:\n%s", n, out)
	}
}

// What was dropped last is told at the end.
func TestDroppedAtTheEnd(t *testing.T) {
	out := logtest.Capture(t)
	send := newSender(exporterOf(t, "zipkin", "http://127.0.0.1:0"), 1, 1, time.Hour)
	for range 4 {
		send.take(&span{})
	}
	send.start()
	send.stop()
	if want := "dropped 3 spans: "; strings.Count(out.String(), want) != 1 {
		t.Errorf("want %q once in\n%s", want, out)
	}
}

func TestTrouble(t *testing.T) {
	var tr trouble
	at, one, two := time.Unix(1e9, 0), errors.New("one"), errors.New("two")
	for i, tc := range []struct {
		after time.Duration
		err   error
		want  string
	}{
		{0, nil, ""}, {0, one, "one"}, {time.Second, one, ""}, {9 * time.Second, two, ""}, {10 * time.Second, nil, "two (2 times in the last 10s)"},
		{11 * time.Second, one, ""}, {30 * time.Second, nil, "one"}, {60 * time.Second, nil, ""}, {61 * time.Second, two, "two"},
	} {
		got := ""
		if tc.err != nil {
			got = tr.failed(tc.err, at.Add(tc.after))
		} else {
			got = tr.due(at.Add(tc.after))
		}
		if got != tc.want {
			t.Errorf("%d: %q, want %q", i, got, tc.want)
		}
	}
	if tr.failed(one, at.Add(62*time.Second)); tr.line(at.Add(62*time.Second)) != "one" {
		t.Error("what is left at the end is not told")
	}
}
