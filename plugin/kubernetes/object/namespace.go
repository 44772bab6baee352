package object

import (
	api "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Namespace is a trimmed api.Namespace.
type Namespace struct {
	Version string // resource version
	Name    string

	*Empty
}

// ToNamespace converts an *api.Namespace to a *Namespace. See ToFunc.
func ToNamespace(obj meta.Object) (meta.Object, error) {
	ns, ok := obj.(*api.Namespace)
	if !ok {
		return nil, unexpected(obj)
	}
	n := &Namespace{Version: ns.ResourceVersion, Name: ns.Name}
	*ns = api.Namespace{}
	return n, nil
}

// DeepCopyObject implements runtime.Object.
func (n *Namespace) DeepCopyObject() runtime.Object {
	c := *n
	return &c
}

// GetNamespace implements meta.Object: a namespace is in none.
func (n *Namespace) GetNamespace() string { return "" }

// SetNamespace implements meta.Object and does nothing.
func (n *Namespace) SetNamespace(string) {}

// GetName implements meta.Object.
func (n *Namespace) GetName() string { return n.Name }

// SetName implements meta.Object and does nothing.
func (n *Namespace) SetName(string) {}

// GetResourceVersion implements meta.Object.
func (n *Namespace) GetResourceVersion() string { return n.Version }

// SetResourceVersion implements meta.Object and does nothing.
func (n *Namespace) SetResourceVersion(string) {}
