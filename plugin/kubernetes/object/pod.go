package object

import (
	"errors"
	"maps"

	api "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pod is a trimmed api.Pod.
type Pod struct {
	Version   string // resource version
	PodIP     string
	Name      string
	Namespace string
	Labels    map[string]string
	// PodIPs are all addresses, PodIP the first of them.
	PodIPs []string

	*Empty
}

// errPodTerminating says that a pod's deletion has begun.
var errPodTerminating = errors.New("pod terminating")

// ToPod converts an *api.Pod to a *Pod. See ToFunc. With a pod whose deletion has begun
// it returns both the pod and an error, on which DefaultProcessor drops additions
// and updates: what was known of the pod before stays until the pod is gone.
func ToPod(obj meta.Object) (meta.Object, error) {
	pod, ok := obj.(*api.Pod)
	if !ok {
		return nil, unexpected(obj)
	}
	p := &Pod{
		Version:   pod.ResourceVersion,
		PodIP:     pod.Status.PodIP,
		Name:      pod.Name,
		Namespace: pod.Namespace,
		Labels:    pod.Labels,
	}
	for _, ip := range pod.Status.PodIPs {
		p.PodIPs = append(p.PodIPs, ip.IP)
	}
	if len(p.PodIPs) == 0 && p.PodIP != "" {
		p.PodIPs = []string{p.PodIP}
	}
	t := pod.DeletionTimestamp
	*pod = api.Pod{}
	if t != nil && !t.IsZero() {
		return p, errPodTerminating
	}
	return p, nil
}

// DeepCopyObject implements runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	c.Labels = maps.Clone(p.Labels)
	c.PodIPs = append([]string(nil), p.PodIPs...)
	return &c
}

// GetNamespace implements meta.Object.
func (p *Pod) GetNamespace() string { return p.Namespace }

// SetNamespace implements meta.Object and does nothing.
func (p *Pod) SetNamespace(string) {}

// GetName implements meta.Object.
func (p *Pod) GetName() string { return p.Name }

// SetName implements meta.Object and does nothing.
func (p *Pod) SetName(string) {}

// GetResourceVersion implements meta.Object.
func (p *Pod) GetResourceVersion() string { return p.Version }

// SetResourceVersion implements meta.Object and does nothing.
func (p *Pod) SetResourceVersion(string) {}
