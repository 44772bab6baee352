// Package object has trimmed forms of the Kubernetes objects that concern DNS, and an
// informer that keeps those instead of the whole ones.
//
//	API ──▶ *api.Pod ──ToPod──▶ *Pod ──▶ indexer, event handler
//	                 DefaultProcessor does this for every change that NewIndexerInformer hears of
//
// The types are what other plugins build their own caches with, and what our controller
// hands to them. The server's own answers do not come from here but from package store.
//
// A converted object never changes once it is in an indexer; whoever wants to change
// one works on its DeepCopyObject. Start at ToFunc; informer.go has the informer.
package object

import (
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToFunc converts an object of the API to its trimmed form.
//
// It takes the object over: what is needed of it moves to the result, and the rest is
// cleared so that its memory can go. An object of another type is an error, and is left alone.
type ToFunc func(meta.Object) (meta.Object, error)

func unexpected(obj meta.Object) error { return fmt.Errorf("unexpected object %v", obj) }
