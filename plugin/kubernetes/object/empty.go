package object

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Empty has the methods of meta.Object and runtime.Object that trimmed objects have no
// data for: what is read is empty, what is set is dropped. It is embedded as a
// pointer, which is never followed and may be nil. (DeepCopyObject is each type's own.)
type Empty struct{}

func (*Empty) GetObjectKind() schema.ObjectKind            { return schema.EmptyObjectKind }
func (*Empty) GetNamespace() string                        { return "" }
func (*Empty) SetNamespace(string)                         {}
func (*Empty) GetName() string                             { return "" }
func (*Empty) SetName(string)                              {}
func (*Empty) GetGenerateName() string                     { return "" }
func (*Empty) SetGenerateName(string)                      {}
func (*Empty) GetUID() types.UID                           { return "" }
func (*Empty) SetUID(types.UID)                            {}
func (*Empty) GetResourceVersion() string                  { return "" }
func (*Empty) SetResourceVersion(string)                   {}
func (*Empty) GetGeneration() int64                        { return 0 }
func (*Empty) SetGeneration(int64)                         {}
func (*Empty) GetSelfLink() string                         { return "" }
func (*Empty) SetSelfLink(string)                          {}
func (*Empty) GetCreationTimestamp() meta.Time             { return meta.Time{} }
func (*Empty) SetCreationTimestamp(meta.Time)              {}
func (*Empty) GetDeletionTimestamp() *meta.Time            { return nil }
func (*Empty) SetDeletionTimestamp(*meta.Time)             {}
func (*Empty) GetDeletionGracePeriodSeconds() *int64       { return nil }
func (*Empty) SetDeletionGracePeriodSeconds(*int64)        {}
func (*Empty) GetLabels() map[string]string                { return nil }
func (*Empty) SetLabels(map[string]string)                 {}
func (*Empty) GetAnnotations() map[string]string           { return nil }
func (*Empty) SetAnnotations(map[string]string)            {}
func (*Empty) GetFinalizers() []string                     { return nil }
func (*Empty) SetFinalizers([]string)                      {}
func (*Empty) GetOwnerReferences() []meta.OwnerReference   { return nil }
func (*Empty) SetOwnerReferences([]meta.OwnerReference)    {}
func (*Empty) GetManagedFields() []meta.ManagedFieldsEntry { return nil }
func (*Empty) SetManagedFields([]meta.ManagedFieldsEntry)  {}
