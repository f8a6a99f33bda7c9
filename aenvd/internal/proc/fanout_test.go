package proc

import (
	"testing"
	"time"
)

func piece(n int) Output { return Output{Stdout, []byte{byte(n), byte(n >> 8)}} }

func collect(sub *Subscription) (count int) {
	for range sub.Output() {
		count++
	}
	return count
}

func TestEverySubscriberGetsEverything(t *testing.T) {
	f := newFanout()
	counts := make(chan int)
	for range 3 {
		sub := f.Subscribe()
		go func() { counts <- collect(sub) }()
	}
	for i := range 1000 {
		f.publish(piece(i))
	}
	f.close()
	for range 3 {
		if got := <-counts; got != 1000 {
			t.Errorf("got %d pieces", got)
		}
	}
}

func TestWithoutSubscribersOutputIsThrownAway(t *testing.T) {
	f := newFanout()
	for i := range 10 * queueLength {
		f.publish(piece(i))
	}
}

func TestAStalledSubscriberIsCutAndOthersGoOn(t *testing.T) {
	f := newFanout()
	f.sharedLimit = 20 * time.Millisecond
	stalled, healthy := f.Subscribe(), f.Subscribe()
	count := make(chan int)
	go func() { count <- collect(healthy) }()
	started := time.Now()
	for i := range 10 * queueLength {
		f.publish(piece(i))
	}
	f.close()
	if got := <-count; got != 10*queueLength {
		t.Errorf("the healthy one got %d", got)
	}
	select {
	case <-stalled.Cut():
	default:
		t.Error("the stalled one was not cut off")
	}
	if took := time.Since(started); took > time.Second {
		t.Errorf("the others waited %s", took)
	}
}

func TestASlowSubscriberAloneLosesNothing(t *testing.T) {
	f := newFanout()
	f.sharedLimit = 0
	sub := f.Subscribe()
	count := make(chan int)
	go func() {
		n := 0
		for range sub.Output() {
			n++
			if n%queueLength == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		count <- n
	}()
	for i := range 5 * queueLength {
		f.publish(piece(i))
	}
	f.close()
	if got := <-count; got != 5*queueLength {
		t.Errorf("got %d", got)
	}
}

func TestLeavingFreesAWaitingPublisher(t *testing.T) {
	f := newFanout()
	sub := f.Subscribe()
	time.AfterFunc(20*time.Millisecond, sub.Leave)
	done := make(chan struct{})
	go func() {
		for i := range 2 * queueLength {
			f.publish(piece(i))
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the publisher still waits")
	}
}

func TestSubscribingAfterTheEnd(t *testing.T) {
	f := newFanout()
	f.close()
	if collect(f.Subscribe()) != 0 {
		t.Error("output after the end")
	}
}
