package files

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "aenvd/internal/gen/filesystem"
	"aenvd/internal/rpc"
)

const (
	// Events that a stream or a polling client may be behind.
	maxQueued = 16 << 10
	// Watchers that clients poll; they are only freed by RemoveWatcher.
	maxWatchers = 512
)

// WatchDir implements filesystempbconnect.FilesystemHandler.
func (s *Service) WatchDir(ctx context.Context, req *connect.Request[pb.WatchDirRequest], stream *connect.ServerStream[pb.WatchDirResponse]) error {
	_, path, err := s.resolve(req.Header(), req.Msg.GetPath())
	if err != nil {
		return err
	}
	watch, err := newWatch(path, watchOptions{req.Msg.GetRecursive(), req.Msg.GetIncludeEntry(), req.Msg.GetAllowNetworkMounts()})
	if err != nil {
		return err
	}
	defer watch.Close()
	start := &pb.WatchDirResponse_Start{Start: &pb.WatchDirResponse_StartEvent{}}
	if err := stream.Send(&pb.WatchDirResponse{Event: start}); err != nil {
		return err
	}
	events := make(chan *pb.FilesystemEvent, maxQueued)
	failed := make(chan error, 1)
	go func() {
		err := watch.run(func(event *pb.FilesystemEvent) bool {
			select {
			case events <- event:
				return true
			case <-ctx.Done():
				return false
			}
		})
		failed <- err
	}()
	return forward(ctx, events, failed, rpc.Keepalive(req.Header()), stream.Send)
}

func forward(ctx context.Context, events <-chan *pb.FilesystemEvent, failed <-chan error, keepalive time.Duration, send func(*pb.WatchDirResponse) error) error {
	timer := time.NewTimer(keepalive)
	defer timer.Stop()
	for {
		response := &pb.WatchDirResponse{Event: &pb.WatchDirResponse_Keepalive{Keepalive: &pb.WatchDirResponse_KeepAlive{}}}
		select {
		case event := <-events:
			response.Event = &pb.WatchDirResponse_Filesystem{Filesystem: event}
		case err := <-failed:
			return err
		case <-ctx.Done():
			return rpc.ContextError(ctx)
		case <-timer.C:
		}
		if err := send(response); err != nil {
			return err
		}
		timer.Reset(keepalive)
	}
}

// watchers are those that clients poll, by id.
type watchers struct {
	mu   sync.Mutex
	byID map[string]*polled
}

type polled struct {
	watch *watch
	mu    sync.Mutex
	// The oldest go first when a client does not ask for too long.
	events []*pb.FilesystemEvent
	err    error
}

func newWatchers() *watchers { return &watchers{byID: map[string]*polled{}} }

func (w *watchers) add(id string, p *polled) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byID) >= maxWatchers {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%d watchers are open, which is the limit; remove some with RemoveWatcher", maxWatchers))
	}
	w.byID[id] = p
	return nil
}

func (w *watchers) take(id string, remove bool) (*polled, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.byID[id]
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("watcher with id %s not found", id))
	}
	if remove {
		delete(w.byID, id)
	}
	return p, nil
}

func (p *polled) run() {
	err := p.watch.run(func(event *pb.FilesystemEvent) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.events) >= maxQueued {
			p.events = p.events[1:]
		}
		p.events = append(p.events, event)
		return true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *polled) drain() ([]*pb.FilesystemEvent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.events
	p.events = nil
	if len(events) == 0 && p.err != nil {
		return nil, p.err
	}
	return events, nil
}

// CreateWatcher implements filesystempbconnect.FilesystemHandler.
func (s *Service) CreateWatcher(_ context.Context, req *connect.Request[pb.CreateWatcherRequest]) (*connect.Response[pb.CreateWatcherResponse], error) {
	_, path, err := s.resolve(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	watch, err := newWatch(path, watchOptions{req.Msg.GetRecursive(), req.Msg.GetIncludeEntry(), req.Msg.GetAllowNetworkMounts()})
	if err != nil {
		return nil, err
	}
	var random [10]byte
	if _, err := rand.Read(random[:]); err != nil {
		watch.Close()
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	id := "w" + hex.EncodeToString(random[:])
	polled := &polled{watch: watch}
	if err := s.watchers.add(id, polled); err != nil {
		watch.Close()
		return nil, err
	}
	go polled.run()
	return connect.NewResponse(&pb.CreateWatcherResponse{WatcherId: id}), nil
}

// GetWatcherEvents implements filesystempbconnect.FilesystemHandler.
func (s *Service) GetWatcherEvents(_ context.Context, req *connect.Request[pb.GetWatcherEventsRequest]) (*connect.Response[pb.GetWatcherEventsResponse], error) {
	polled, err := s.watchers.take(req.Msg.GetWatcherId(), false)
	if err != nil {
		return nil, err
	}
	events, err := polled.drain()
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.GetWatcherEventsResponse{Events: events}), nil
}

// RemoveWatcher implements filesystempbconnect.FilesystemHandler.
func (s *Service) RemoveWatcher(_ context.Context, req *connect.Request[pb.RemoveWatcherRequest]) (*connect.Response[pb.RemoveWatcherResponse], error) {
	polled, err := s.watchers.take(req.Msg.GetWatcherId(), true)
	if err != nil {
		return nil, err
	}
	polled.watch.Close()
	return connect.NewResponse(&pb.RemoveWatcherResponse{}), nil
}
