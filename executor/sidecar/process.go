package sidecar

import (
	"context"
	"errors"
	"os"
	"syscall"

	"tensile/device/lease/process"
)

// AwaitEnd waits for the end of the process at the other end of a connection, until ctx is done. An error says why that
// cannot be seen: it is that of its command, or came by the descriptor that this was given.
func AwaitEnd(ctx context.Context, conn syscall.Conn, command int) error {
	peer, err := process.PeerOf(conn)
	if err != nil {
		return err
	}
	if pid := int(peer.Pid); pid == command || pid == os.Getpid() {
		return errors.New("it ends with its command, or is not known")
	}
	p, err := os.FindProcess(int(peer.Pid))
	if err != nil {
		return err
	}
	defer p.Release()
	var file *os.File
	var failed error
	err = p.WithHandle(func(handle uintptr) { // which can be read when the process has ended
		var own int
		if own, failed = syscall.Dup(int(handle)); failed == nil {
			syscall.CloseOnExec(own)
			failed = syscall.SetNonblock(own, true)
			file = os.NewFile(uintptr(own), "process")
		}
	})
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err = errors.Join(err, failed); err != nil {
		return err
	}
	defer file.Close()
	defer context.AfterFunc(ctx, func() { file.Close() })()
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	asked := false
	err = raw.Read(func(uintptr) bool {
		woken := asked
		asked = true
		return woken
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
