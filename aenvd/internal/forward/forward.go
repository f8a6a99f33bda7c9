// Package forward makes servers reachable that listen on localhost only: many development servers do, and what comes
// from outside the guest arrives at the address of its network card.
package forward

import (
	"context"
	"io"
	"log"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// Looking costs an emulated processor a third of what it uses while nothing happens, so it becomes rarer.
	scanInterval     = time.Second
	scanIntervalIdle = 8 * time.Second
	dialTimeout      = 2 * time.Second
)

// Forwarder listens at one address for every port that only localhost has.
type Forwarder struct {
	address netip.Addr
	wake    chan struct{}

	mu        sync.Mutex
	listeners map[uint16]*forwarding
	conns     map[*net.TCPConn]struct{}
}

type forwarding struct {
	listener net.Listener
	target   netip.AddrPort
}

// New forwards from address, which is that of the network card.
func New(address netip.Addr) *Forwarder {
	return &Forwarder{address: address, wake: make(chan struct{}, 1), listeners: map[uint16]*forwarding{}, conns: map[*net.TCPConn]struct{}{}}
}

// Wake says that something happens in the guest: there may be a new listener soon.
func (f *Forwarder) Wake() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}

// Run looks for listeners until ctx ends: every second while something happens, then more and more rarely.
func (f *Forwarder) Run(ctx context.Context) {
	defer f.update(nil)
	interval := scanInterval
	for {
		f.update(listeners())
		wait := time.NewTimer(interval)
		select {
		case <-wait.C:
			interval = min(interval+interval/8, scanIntervalIdle)
			continue
		case <-f.wake:
			interval = scanInterval
			wait.Reset(interval)
		case <-ctx.Done():
			return
		}
		// Whoever woke it gets a look within a second, and others who do so meanwhile the same one.
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
	}
}

// wanted gives, by port, the loopback listener to forward to. A port that is open at our address, or at all addresses,
// needs no help.
func wanted(all []netip.AddrPort, address netip.Addr) map[uint16]netip.AddrPort {
	local := map[uint16]netip.AddrPort{}
	open := map[uint16]bool{}
	for _, listener := range all {
		switch {
		case listener.Addr().IsLoopback() && listener.Addr() != address:
			if known, ok := local[listener.Port()]; !ok || !known.Addr().Is4() {
				local[listener.Port()] = listener
			}
		case listener.Addr().IsUnspecified():
			open[listener.Port()] = true
		}
	}
	for port := range open {
		delete(local, port)
	}
	return local
}

func (f *Forwarder) update(all []netip.AddrPort) {
	targets := wanted(all, f.address)
	f.mu.Lock()
	defer f.mu.Unlock()
	for port, current := range f.listeners {
		if targets[port] != current.target {
			current.listener.Close()
			delete(f.listeners, port)
		}
	}
	for port, target := range targets {
		if _, known := f.listeners[port]; known {
			continue
		}
		listener, err := net.Listen("tcp", netip.AddrPortFrom(f.address, port).String())
		if err != nil {
			continue // the program listens there itself, or has begun to
		}
		f.listeners[port] = &forwarding{listener, target}
		go f.accept(listener, target)
	}
}

func (f *Forwarder) accept(listener net.Listener, target netip.AddrPort) {
	for {
		accepted, err := listener.Accept()
		if err != nil {
			return // closed
		}
		go f.serve(accepted.(*net.TCPConn), target)
	}
}

func (f *Forwarder) serve(client *net.TCPConn, target netip.AddrPort) {
	f.track(client)
	defer f.untrack(client)
	dialed, err := net.DialTimeout("tcp", target.String(), dialTimeout)
	if err != nil {
		_ = client.SetLinger(0) // "nobody there" is what the client would have seen
		client.Close()
		return
	}
	server := dialed.(*net.TCPConn)
	var both sync.WaitGroup
	both.Add(2)
	for _, pair := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		go func() {
			defer both.Done()
			if _, err := io.Copy(pair[1], pair[0]); err != nil {
				pair[0].Close() // the other direction must not wait for a broken one
				pair[1].Close()
				return
			}
			_ = pair[1].CloseWrite()
		}()
	}
	both.Wait()
	client.Close()
	server.Close()
}

func (f *Forwarder) track(conn *net.TCPConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[conn] = struct{}{}
}

func (f *Forwarder) untrack(conn *net.TCPConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}

// Drop resets all connections, as before a pause. Listeners stay.
func (f *Forwarder) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		if err := conn.SetLinger(0); err != nil {
			log.Printf("forward: %v", err)
		}
		conn.Close()
	}
}
