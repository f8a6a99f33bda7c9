package proc

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	pb "aenvd/internal/gen/process"
	"aenvd/internal/rpc"
	"aenvd/internal/streams"
)

var errTooSlow = errors.New("this client did not read the output in time and was left behind; connect again to go on from here")

// pump sends the events of a process until its end: start, output, and a sign of life after each `keepalive` of silence.
func pump(ctx context.Context, process *Process, sub *Subscription, keepalive time.Duration, send func(*pb.ProcessEvent) error) error {
	go func() { // a send may wait for a client that reads nothing
		select {
		case <-sub.Cut():
			streams.AbortWrites(ctx)
		case <-sub.Left():
		}
	}()
	start := &pb.ProcessEvent_StartEvent{Pid: process.PID}
	if err := send(&pb.ProcessEvent{Event: &pb.ProcessEvent_Start{Start: start}}); err != nil {
		return err
	}
	timer := time.NewTimer(keepalive)
	defer timer.Stop()
	for {
		event := &pb.ProcessEvent{Event: &pb.ProcessEvent_Keepalive{Keepalive: &pb.ProcessEvent_KeepAlive{}}}
		select {
		case output, more := <-sub.Output():
			if !more {
				<-process.Done()
				return send(&pb.ProcessEvent{Event: &pb.ProcessEvent_End{End: process.End()}})
			}
			event.Event = &pb.ProcessEvent_Data{Data: dataEvent(output)}
		case <-sub.Cut():
			return connect.NewError(connect.CodeResourceExhausted, errTooSlow)
		case <-ctx.Done():
			return rpc.ContextError(ctx)
		case <-timer.C:
		}
		if err := send(event); err != nil {
			return err
		}
		timer.Reset(keepalive)
	}
}

func dataEvent(output Output) *pb.ProcessEvent_DataEvent {
	switch output.Kind {
	case Stdout:
		return &pb.ProcessEvent_DataEvent{Output: &pb.ProcessEvent_DataEvent_Stdout{Stdout: output.Data}}
	case Stderr:
		return &pb.ProcessEvent_DataEvent{Output: &pb.ProcessEvent_DataEvent_Stderr{Stderr: output.Data}}
	default:
		return &pb.ProcessEvent_DataEvent{Output: &pb.ProcessEvent_DataEvent_Pty{Pty: output.Data}}
	}
}
