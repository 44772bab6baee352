package clouddns

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/api/googleapi"
)

// The API asks who comes when it is busy to come again. The libraries of the other providers do so by themselves.
const (
	tries     = 3
	firstWait = time.Second
	longest   = 10 * time.Second // that is waited, whatever Retry-After says
)

// again calls f until the API is not busy, three times at most.
func again(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		var said *googleapi.Error
		if n == tries || !errors.As(err, &said) || said.Code != http.StatusTooManyRequests && said.Code < http.StatusInternalServerError {
			return err
		}
		wait := time.Duration(n) * firstWait
		if s, _ := strconv.Atoi(said.Header.Get("Retry-After")); s > 0 {
			wait = min(time.Duration(s)*time.Second, longest)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
