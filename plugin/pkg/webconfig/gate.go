package webconfig

import (
	"net/http"
	"sync"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"
)

// gate lets requests through to next as the file says when they come.
type gate struct {
	path    string
	next    http.Handler
	limiter *rate.Limiter // nil: no limit

	hashing sync.Mutex // bcrypt is slow on purpose: one at a time

	mu    sync.Mutex
	known map[login]bool // what bcrypt said, of at most maxKnown; guarded by mu
}

// login is a password that was tried for a user with a hash.
type login struct{ user, hash, password string }

// maxKnown bounds what is remembered. A scraper is one login; who guesses passwords pushes others out, and costs time.
const maxKnown = 100

// nobody is the hash of a user that there is not, with the cost that is usual, so that the time tells nothing. No
// password has it.
var nobody = sync.OnceValue(func() string {
	// It fails for passwords of more than 72 octets alone.
	hash, _ := bcrypt.GenerateFromPassword([]byte("nobody"), bcrypt.DefaultCost)
	return string(hash)
})

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The file is read for each request, of which a scraper makes one in many seconds, so that changes count at once.
	f, err := read(g.path)
	switch {
	case err != nil:
		refuse(w, http.StatusInternalServerError)
		return
	case g.limiter != nil && !g.limiter.Allow():
		refuse(w, http.StatusTooManyRequests)
		return
	}
	for name, value := range f.HTTP.Headers {
		w.Header().Set(name, value)
	}
	if len(f.Users) > 0 {
		user, password, told := r.BasicAuth()
		if !told || !g.admits(f, user, password) {
			w.Header().Set("WWW-Authenticate", "Basic")
			refuse(w, http.StatusUnauthorized)
			return
		}
	}
	g.next.ServeHTTP(w, r)
}

// admits reports whether f has the user with the password.
func (g *gate) admits(f *file, user, password string) bool {
	hash, there := f.Users[user]
	if !there {
		hash = nobody() // which takes as long as a user's
	}
	return g.right(login{user, hash, password}) && there
}

// right reports whether the password is that of the hash. bcrypt takes some 50 ms, so what it said is kept.
func (g *gate) right(l login) bool {
	g.mu.Lock()
	right, ok := g.known[l]
	g.mu.Unlock()
	if ok {
		return right
	}
	// Others wait here, so that guesses take one processor at most. Two that ask the same both compute it, which is
	// rare.
	g.hashing.Lock()
	right = bcrypt.CompareHashAndPassword([]byte(l.hash), []byte(l.password)) == nil
	g.hashing.Unlock()

	g.mu.Lock()
	defer g.mu.Unlock()
	// A map's order is random, and so is who has to go: nobody can arrange for a scraper to be forgotten each time.
	for old := range g.known {
		if len(g.known) < maxKnown {
			break
		}
		delete(g.known, old)
	}
	g.known[l] = right
	return right
}

// refuse answers with a status and its text.
func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }
