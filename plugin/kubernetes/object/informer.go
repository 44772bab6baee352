package object

import (
	"errors"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// ProcessorBuilder makes the function that carries changes into an indexer and tells the handler of them.
type ProcessorBuilder func(cache.Indexer, cache.ResourceEventHandler) cache.ProcessFunc

// NewIndexerInformer returns an indexer and the controller that fills it once it runs.
//
// lw lists and watches objects of objType's type; builder's function puts them into the
// indexer, in whatever form it likes, and calls h. There is no periodic resync.
func NewIndexerInformer(lw cache.ListerWatcher, objType runtime.Object, h cache.ResourceEventHandler, indexers cache.Indexers, builder ProcessorBuilder) (cache.Indexer, cache.Controller) {
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: indexer, EmitDeltaTypeReplaced: true})
	return indexer, cache.New(&cache.Config{
		Queue:         queue,
		ListerWatcher: lw,
		ObjectType:    objType,
		Process:       builder(indexer, h),
	})
}

// DefaultProcessor converts every object with convert before it goes into the indexer
// and to the handler. If recordLatency is given, each change of an endpoint slice that
// was watched, not listed, is measured with it.
//
// A pod's addition or update is skipped once its deletion has begun. The last known state of
// an object whose deletion was missed is already converted and passed on as it is.
func DefaultProcessor(convert ToFunc, recordLatency *EndpointLatencyRecorder) ProcessorBuilder {
	return func(indexer cache.Indexer, h cache.ResourceEventHandler) cache.ProcessFunc {
		p := processor{convert, recordLatency, indexer, h}
		return func(obj any, initial bool) error {
			deltas, ok := obj.(cache.Deltas)
			if !ok {
				return fmt.Errorf("unexpected change %T, want deltas", obj)
			}
			for _, d := range deltas { // oldest first
				if err := p.apply(d, initial); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

type processor struct {
	convert ToFunc
	latency *EndpointLatencyRecorder
	indexer cache.Indexer
	handler cache.ResourceEventHandler
}

func (p processor) apply(d cache.Delta, initial bool) error {
	if _, ok := d.Object.(cache.DeletedFinalStateUnknown); ok {
		return p.remove(d.Object)
	}
	whole, ok := d.Object.(meta.Object)
	if !ok {
		return fmt.Errorf("unexpected object %v", d.Object)
	}
	listed := initial || d.Type == cache.Sync || d.Type == cache.Replaced
	if p.latency != nil && !listed {
		p.latency.begin(whole)
		defer p.latency.record()
	}
	obj, err := p.convert(whole)
	terminating := errors.Is(err, errPodTerminating)
	if err != nil && !terminating {
		return err
	}
	switch d.Type {
	case cache.Deleted:
		return p.remove(obj)
	case cache.Sync, cache.Replaced, cache.Added, cache.Updated:
		if !terminating {
			return p.put(obj, initial)
		}
	}
	return nil
}

func (p processor) put(obj any, initial bool) error {
	old, exists, err := p.indexer.Get(obj)
	if err != nil {
		return err
	}
	if exists {
		if err := p.indexer.Update(obj); err != nil {
			return err
		}
		p.handler.OnUpdate(old, obj)
		return nil
	}
	if err := p.indexer.Add(obj); err != nil {
		return err
	}
	p.handler.OnAdd(obj, initial)
	return nil
}

func (p processor) remove(obj any) error {
	if err := p.indexer.Delete(obj); err != nil {
		return err
	}
	p.handler.OnDelete(obj)
	return nil
}
