// Package streams knows every request in progress and every connection, so that all can be ended after a resume: a
// memory image wakes up with connections to clients that are long gone.
package streams

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// ErrDropped is the cause with which requests end.
var ErrDropped = errors.New("the sandbox was paused")

// dropTimeout is how long Drop waits for handlers to notice.
const dropTimeout = time.Second

type contextKey int

const (
	requestKey contextKey = iota
	connectionKey
)

// Registry is safe for use by several goroutines. The zero value is not usable; see New.
type Registry struct {
	mu       sync.Mutex
	changed  *sync.Cond
	requests map[*request]struct{}
	conns    map[*conn]struct{}
}

type request struct {
	cancel     context.CancelCauseFunc
	controller *http.ResponseController
}

// New returns an empty registry.
func New() *Registry {
	r := &Registry{requests: map[*request]struct{}{}, conns: map[*conn]struct{}{}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

// Track registers each request for as long as next handles it.
func (r *Registry) Track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithCancelCause(req.Context())
		defer cancel(nil)
		current := &request{cancel: cancel, controller: http.NewResponseController(w)}
		r.add(current)
		defer r.remove(current)
		next.ServeHTTP(w, req.WithContext(context.WithValue(ctx, requestKey, current)))
	})
}

func (r *Registry) add(current *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[current] = struct{}{}
}

func (r *Registry) remove(current *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.requests, current)
	r.changed.Broadcast()
}

// AbortWrites makes the writes of the request fail that ctx belongs to, also one that waits for a client which reads
// nothing. The connection is of no use afterwards.
func AbortWrites(ctx context.Context) {
	if current, ok := ctx.Value(requestKey).(*request); ok {
		current.abort()
	}
}

func (r *request) abort() {
	_ = r.controller.SetWriteDeadline(time.Now()) // no deadlines, no waiting writes
}

// Drop ends all requests but the one that ctx belongs to, resets their connections, and waits for the handlers.
func (r *Registry) Drop(ctx context.Context) {
	self, _ := ctx.Value(requestKey).(*request)
	ownConn, _ := ctx.Value(connectionKey).(*conn)
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.requests {
		if other != self {
			other.cancel(ErrDropped)
			other.abort()
		}
	}
	for other := range r.conns {
		if other != ownConn {
			other.reset()
		}
	}
	deadline := time.Now().Add(dropTimeout)
	timer := time.AfterFunc(dropTimeout, r.changed.Broadcast)
	defer timer.Stop()
	for r.othersThan(self) && time.Now().Before(deadline) {
		r.changed.Wait()
	}
}

func (r *Registry) othersThan(self *request) bool {
	for other := range r.requests {
		if other != self {
			return true
		}
	}
	return false
}

// Listen registers the connections that listener accepts.
func (r *Registry) Listen(listener net.Listener) net.Listener {
	return &trackingListener{listener, r}
}

// ConnContext is for http.Server: it tells requests which connection they came by.
func (r *Registry) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey, c)
}

type trackingListener struct {
	net.Listener
	registry *Registry
}

func (l *trackingListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &conn{Conn: accepted, registry: l.registry}
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	l.registry.conns[tracked] = struct{}{}
	return tracked, nil
}

type conn struct {
	net.Conn
	registry *Registry
}

func (c *conn) Close() error {
	c.registry.mu.Lock()
	delete(c.registry.conns, c)
	c.registry.mu.Unlock()
	return c.Conn.Close()
}

// reset closes with RST: a client must not take the end for a regular one. The registry is locked.
func (c *conn) reset() {
	delete(c.registry.conns, c)
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Conn.Close()
}
