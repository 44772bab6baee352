package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusOnly is the serializer that client-go asks for. All it ever decodes is the
// Status in which a server says why it refuses; other bodies are streams of ours.
type statusOnly struct{}

var _ runtime.NegotiatedSerializer = statusOnly{}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s statusOnly) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{
		{MediaType: contentType, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf", Serializer: s},
		{MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true, Serializer: s},
	}
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s statusOnly) EncoderForVersion(runtime.Encoder, runtime.GroupVersioner) runtime.Encoder {
	return s
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s statusOnly) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder {
	return s
}

var errReadOnly = errors.New("the client only reads")

// Encode implements runtime.Encoder: nothing is ever sent.
func (statusOnly) Encode(runtime.Object, io.Writer) error { return errReadOnly }

// Identifier implements runtime.Encoder.
func (statusOnly) Identifier() runtime.Identifier { return "status" }

// Decode implements runtime.Decoder.
func (statusOnly) Decode(b []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	st, err := decodeStatus(b)
	if err != nil {
		return nil, nil, err
	}
	return st, &schema.GroupVersionKind{Version: "v1", Kind: "Status"}, nil
}

func decodeStatus(b []byte) (*metav1.Status, error) {
	st := new(metav1.Status)
	kind, raw, err := lean.Unwrap(b)
	if err == nil {
		if err = st.Unmarshal(raw); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
		st.Kind = string(kind)
	} else if err := json.Unmarshal(b, st); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	if st.Kind != "Status" {
		return nil, fmt.Errorf("status: unexpected kind %q", st.Kind)
	}
	return st, nil
}

// statusError turns the object of an ERROR event into an error.
func statusError(b []byte) error {
	st, err := decodeStatus(b)
	if err != nil {
		return noEvent(err)
	}
	return &apierrors.StatusError{ErrStatus: *st}
}
