export { type ControlHandler, createListener, type Listener, type ListenerOptions } from './listener.ts';
export type { ProxyRoute, RouteSource } from './routes.ts';
