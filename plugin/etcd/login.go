package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// letIn makes the client of an etcd that asks for credentials. That takes etcd's answer, so it is done in the background,
// again and again until e is shut down.
func (e *Etcd) letIn(config etcdcv3.Config) {
	ctx, cancel := context.WithCancel(context.Background())
	config.DialTimeout = requestTime
	e.login.cancel = cancel
	e.login.tried = make(chan struct{})
	e.login.done.Go(func() {
		tried := sync.OnceFunc(func() { close(e.login.tried) })
		defer tried()
		nobody := config
		nobody.Username, nobody.Password = "", ""
		door, err := etcdcv3.New(nobody)
		if err != nil {
			logger.Errorf("Logging in: %v", err)
			return
		}
		e.login.door.Store(door)
		for ctx.Err() == nil {
			config.Context = ctx
			client, err := etcdcv3.New(config)
			if err == nil {
				client.Auth = &calm{Auth: door.Auth, client: door}
				e.late.Store(client)
				return
			}
			if ctx.Err() == nil && e.warnOnce.due(err.Error(), time.Now()) {
				logger.Warningf("Logging in: %v", err)
			}
			tried()
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		}
	})
}

// calm is an Auth for many callers. When etcd does not know a token any more, the client has each query log in for itself, and
// etcd takes a tenth of a second of computing for each: the more queries there are, the more of them give up before they
// have a token, and etcd computes in vain. Here there is one login at a time, for all who wait, whether its first caller
// gives up or not. It comes from a client that has no token: a login that bears an old one is refused by some etcds,
// and so the client would log in to log in.
type calm struct {
	etcdcv3.Auth
	client *etcdcv3.Client // whose Auth it is

	mu   sync.Mutex
	last *loggingIn
}

// loggingIn is a login, under way until done is closed.
type loggingIn struct {
	done  chan struct{}
	reply *etcdcv3.AuthenticateResponse
	err   error
	ended time.Time
}

// freshLogin is how long a login is good for those who have been refused with a token from before it.
const freshLogin = 100 * time.Millisecond

// Authenticate implements etcdcv3.Auth.
func (c *calm) Authenticate(ctx context.Context, name, password string) (*etcdcv3.AuthenticateResponse, error) {
	for {
		l := c.login(name, password)
		select {
		case <-l.done:
			if !errors.Is(l.err, context.DeadlineExceeded) { // else it may have begun long before
				return l.reply, l.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// login is the login that is under way or has just succeeded, or else a new one.
func (c *calm) login(name, password string) *loggingIn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.last; l != nil && l.good() {
		return l
	}
	l := &loggingIn{done: make(chan struct{})}
	c.last = l
	go func() {
		ctx, cancel := context.WithTimeout(c.client.Ctx(), requestTime)
		defer cancel()
		l.reply, l.err = first(ctx, c.client, func(ctx context.Context) (*etcdcv3.AuthenticateResponse, error) {
			return c.Auth.Authenticate(ctx, name, password)
		})
		l.ended = time.Now()
		close(l.done)
	}()
	return l
}

func (l *loggingIn) good() bool {
	select {
	case <-l.done:
		return l.err == nil && time.Since(l.ended) < freshLogin
	default:
		return true
	}
}
