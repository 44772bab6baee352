package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// numbered answers each request with how many there were, once it may.
type numbered struct {
	may chan struct{}

	mu        sync.Mutex
	n, atWork int
	together  int // most that were at work at one time
}

func (c *numbered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.n++
	n := c.n
	c.atWork++
	c.together = max(c.together, c.atWork)
	c.mu.Unlock()
	<-c.may
	c.mu.Lock()
	c.atWork--
	c.mu.Unlock()
	w.Header().Set("Content-Type", r.Header.Get("Accept"))
	if r.URL.RawQuery != "" {
		w.WriteHeader(http.StatusTeapot)
	}
	fmt.Fprint(w, n)
}

// ask is what a request to h gets, as status, content type and text.
func ask(h http.Handler, target, accept string) string {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, _ := io.ReadAll(w.Result().Body)
	return fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("Content-Type"), b)
}

// However many ask at one time, one page is made at a time, and those who came before it began share it.
func TestPagesAreShared(t *testing.T) {
	made := &numbered{may: make(chan struct{})}
	p := &pages{made: made}
	got := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	come := func(n int, target, accept string) {
		t.Helper()
		were := p.waiting.Load()
		for range n {
			wg.Go(func() {
				text := ask(p, target, accept)
				mu.Lock()
				got[text]++
				mu.Unlock()
			})
		}
		eventually.Holds(t, "all have come", func() bool { return p.waiting.Load() == were+int64(n) })
	}
	come(1, "/metrics", "text")
	come(100, "/metrics", "text") // while that is made
	made.may <- struct{}{}
	close(made.may)
	wg.Wait()
	if made.together != 1 || got["200 text 1"] != 1 || got["200 text 2"] != 100 {
		t.Errorf("%d at a time, got %v", made.together, got)
	}
	if p.last != nil {
		t.Error("a page is kept for nobody")
	}
	for i, want := range []string{"200 text 3", "200 other 4", "418 other 5"} { // who comes later gets a new one
		target, accept := "/metrics", "text"
		if i > 0 {
			accept = "other"
		}
		if i > 1 {
			target += "?all"
		}
		if text := ask(p, target, accept); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

// What is made for one who wants something else is not shared.
func TestUnlikePages(t *testing.T) {
	made := &numbered{may: make(chan struct{})}
	p := &pages{made: made}
	texts := make(chan string, 3)
	for i, accept := range []string{"text", "text", "other"} {
		go func() { texts <- ask(p, "/metrics", accept) }()
		eventually.Holds(t, "it has come", func() bool { return p.waiting.Load() == int64(i+1) })
	}
	for range 3 {
		made.may <- struct{}{}
	}
	got := []string{<-texts, <-texts, <-texts}
	slices.Sort(got)
	if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "200 other ") }) || got[0] == got[1] || got[1] == got[2] {
		t.Errorf("got %q", got)
	}
}
