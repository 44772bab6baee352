package corefile

import (
	"runtime"
	"strings"
	"sync"
)

// Setup functions of this repository open nothing and ask nobody, so a configuration can be checked by running them. Of
// those of others that cannot be known: who checks a configuration has to say that they were run.

// ours is where the plugins of this repository lie.
const ours = "github.com/coredns/coredns/"

// own has the directives that plugins of this repository registered.
var own sync.Map // string to struct{}

// NoteOrigin notes whose directive is registered: of the code that called the caller. plugin.Register calls it.
func NoteOrigin(name string) {
	pc, _, _, ok := runtime.Caller(2)
	if !ok {
		return
	}
	if f := runtime.FuncForPC(pc); f != nil && strings.HasPrefix(f.Name(), ours) {
		own.Store(name, struct{}{})
	}
}

// Foreign reports whether a directive is set up by code from outside of this repository: what that does is not
// known. One that nobody has registered is foreign, too.
func Foreign(name string) bool {
	_, known := own.Load(name)
	return !known
}
