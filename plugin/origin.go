package plugin

import (
	"runtime"
	"strings"
	"sync"
)

// ours is where the plugins of this repository lie.
const ours = "github.com/coredns/coredns/"

// own has the directives that plugins of this repository registered.
var own sync.Map // string to struct{}

// noteOrigin notes whose directive is registered. It is called by Register only.
func noteOrigin(name string) {
	pc, _, _, ok := runtime.Caller(2)
	if !ok {
		return
	}
	if f := runtime.FuncForPC(pc); f != nil && strings.HasPrefix(f.Name(), ours) {
		own.Store(name, struct{}{})
	}
}

// Foreign reports whether a directive is set up by code from outside of this repository: what that does is not known.
func Foreign(name string) bool {
	_, known := own.Load(name)
	return !known
}
