package nomad

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// An agent that leads elsewhere is followed; another host does not get the token.
func TestRedirects(t *testing.T) {
	var got string
	answer := func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get(tokenHeader)
		fmt.Fprint(w, "[]")
	}
	other := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(other.Close)
	for to, want := range map[string]string{"/here": "secret", other.URL + "/there": "", "/again": "none asked"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/here" {
				answer(w, r)
				return
			}
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}))
		t.Cleanup(s.Close)
		a, err := newAgent(s.URL, "secret")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.http.CloseIdleConnections)
		got = "none asked"
		var all []instance
		_, err = a.get(t.Context(), "/v1/service/web", url.Values{}, &all)
		if got != want || (err == nil) != (want != "none asked") {
			t.Errorf("%s: the token there is %q, want %q; %v", to, got, want, err)
		}
	}
}
