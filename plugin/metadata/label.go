package metadata

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Func is a label's value, worked out when it is called.
type Func func() string

// IsLabel reports whether label has the form plugin/name.
func IsLabel(label string) bool {
	slash := strings.IndexByte(label, '/')
	return slash > 0 && slash < len(label)-1
}

// labels is a context with labels. There are few of them, so that looking through all is the fastest way to one.
type labels struct {
	context.Context

	mu    sync.RWMutex
	names []string
	funcs []Func
}

type labelsKey struct{}

func (l *labels) Value(key any) any {
	if _, ok := key.(labelsKey); ok {
		return l
	}
	return l.Context.Value(key)
}

func from(ctx context.Context) *labels {
	l, _ := ctx.Value(labelsKey{}).(*labels)
	return l
}

// ContextWithMetadata returns ctx with labels of its own, none yet. Those that ctx has are hidden.
func ContextWithMetadata(ctx context.Context) context.Context { return &labels{Context: ctx} }

// SetValueFunc sets the value of label in ctx, instead of the one that it had, and reports whether it could: ctx
// takes labels only if the query's block has the metadata plugin.
func SetValueFunc(ctx context.Context, label string, f Func) bool {
	l := from(ctx)
	if l == nil || !IsLabel(label) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.names, label); i >= 0 {
		l.funcs[i] = f
		return true
	}
	l.names, l.funcs = append(l.names, label), append(l.funcs, f)
	return true
}

// ValueFunc returns the value of label in ctx, nil if it is not there.
func ValueFunc(ctx context.Context, label string) Func {
	l := from(ctx)
	if l == nil {
		return nil
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if i := slices.Index(l.names, label); i >= 0 {
		return l.funcs[i]
	}
	return nil
}

// Labels returns all labels of ctx.
func Labels(ctx context.Context) []string {
	l := from(ctx)
	if l == nil {
		return nil
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.names)
}

// ValueFuncs returns all labels of ctx with their values, in a map of the caller's.
func ValueFuncs(ctx context.Context) map[string]Func {
	l := from(ctx)
	if l == nil {
		return nil
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make(map[string]Func, len(l.names))
	for i, name := range l.names {
		all[name] = l.funcs[i]
	}
	return all
}
