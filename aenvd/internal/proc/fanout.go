package proc

import (
	"sync"
	"time"
)

const (
	// Pieces of up to readSize bytes that a subscriber may be behind: at most 1 MiB.
	queueLength = 32
	// A subscriber that is alone may hold the process up, as a terminal does; one that takes nothing for this long is gone.
	aloneLimit = 30 * time.Second
	// With others waiting, this is all the time that one may cost them before it is cut off. It starts anew whenever the
	// subscriber has caught up.
	sharedLimit = 2 * time.Second
)

// Kind says where output came from.
type Kind int

const (
	Stdout Kind = iota
	Stderr
	Terminal
)

// Output is one piece; Data is shared by all subscribers and never written to.
type Output struct {
	Kind Kind
	Data []byte
}

// fanout gives each piece of output to all subscribers. Without any, output is thrown away and the process runs on.
// Queues are bounded: a subscriber that can't keep up slows the process down for a while and is then cut off.
type fanout struct {
	aloneLimit, sharedLimit time.Duration
	// Held while a piece is handed out: pieces arrive in the same order everywhere.
	publishing sync.Mutex
	mu         sync.Mutex
	subs       map[*Subscription]struct{}
	closed     bool
}

// Subscription is one client's view of the output from now on.
type Subscription struct {
	fanout *fanout
	queue  chan Output
	// Closed when the subscriber was too slow.
	cut chan struct{}
	// Closed by Leave.
	left  chan struct{}
	leave sync.Once
	// How long it has held others up since it last caught up.
	debt time.Duration
}

func newFanout() *fanout {
	return &fanout{aloneLimit: aloneLimit, sharedLimit: sharedLimit, subs: map[*Subscription]struct{}{}}
}

// Subscribe starts a view. After close it has nothing but its end.
func (f *fanout) Subscribe() *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	sub := &Subscription{fanout: f, queue: make(chan Output, queueLength), cut: make(chan struct{}), left: make(chan struct{})}
	if f.closed {
		close(sub.queue)
		return sub
	}
	f.subs[sub] = struct{}{}
	return sub
}

// Output has the pieces; it is closed after the last.
func (s *Subscription) Output() <-chan Output { return s.queue }

// Cut is closed when the subscriber was too slow and gets no more.
func (s *Subscription) Cut() <-chan struct{} { return s.cut }

// Left is closed by Leave.
func (s *Subscription) Left() <-chan struct{} { return s.left }

// Leave ends the subscription; it may be called again.
func (s *Subscription) Leave() {
	s.leave.Do(func() {
		s.fanout.remove(s)
		close(s.left)
	})
}

func (f *fanout) remove(sub *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, sub)
}

func (f *fanout) snapshot() []*Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	subs := make([]*Subscription, 0, len(f.subs))
	for sub := range f.subs {
		subs = append(subs, sub)
	}
	return subs
}

// publish hands a piece to everybody; first to those who have room, so that they go on while it waits for the others.
func (f *fanout) publish(output Output) {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	subs := f.snapshot()
	var full []*Subscription
	for _, sub := range subs {
		if len(sub.queue) == 0 {
			sub.debt = 0
		}
		select {
		case sub.queue <- output:
		default:
			full = append(full, sub)
		}
	}
	for _, sub := range full {
		limit := f.aloneLimit
		if len(subs) > 1 {
			limit = f.sharedLimit - sub.debt
		}
		f.wait(sub, output, limit)
	}
}

func (f *fanout) wait(sub *Subscription, output Output, limit time.Duration) {
	started := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case sub.queue <- output:
		sub.debt += time.Since(started)
	case <-sub.left:
	case <-timer.C:
		f.remove(sub)
		close(sub.cut)
	}
}

// close ends all views, after what they still have to read. Nothing may be published afterwards.
func (f *fanout) close() {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for sub := range f.subs {
		close(sub.queue)
	}
	clear(f.subs)
}
