/** What the orchestrator is made of; the server fills it in, tests fill in fakes. */
import type { DatabaseSync } from 'node:sqlite';
import type { Launcher } from '@aenv/linux';
import type { Home, LayerStore, SandboxStore, TemplateStore } from '@aenv/snapshot';
import type { Clock, Logger } from '@aenv/std';
import type { VmmDriver } from '@aenv/vmm';
import type { DoctorFinding } from './engine.ts';
import type { GuestPort } from './guest-port.ts';
import type { LayerTable } from './layer-table.ts';
import type { Ledger } from './ledger.ts';

export interface MachineParts {
  kernel: string;
  initramfs: string;
  kernelArguments: string[];
}

export interface OrchestratorOptions {
  home: Home;
  launcher: Launcher;
  driver: VmmDriver;
  guests: GuestPort;
  /** For new templates; a built one keeps those it was booted with. */
  machine: MachineParts;
  defaults: { cpuCount: number; memoryMb: number; diskMb: number };
  limits: {
    /** Longest timeout that a sandbox may ask for, seconds. */
    maxTimeoutSeconds: number;
    /** Sandboxes that may have a VM at the same time, builds included. */
    maxRunning: number;
    /** Guest memory that may be promised, percent of the machine's. */
    overcommitPercent: number;
    /** Seconds that a start waits for room; 0 = it is refused at once. */
    queueSeconds: number;
    /** Seconds until a VM that is being restored has to be there. */
    launchTimeoutSeconds: number;
    /** Seconds until a template's ready command has to succeed. */
    readyTimeoutSeconds: number;
  };
  /** Network slots kept ready. */
  slotPoolSize: number;
  /** VMs kept ready for each build in use (0 = none), and how long after its last start a build is in use. */
  pool: { size: number; maxIdleSeconds: number };
  /** MiB of memory that the host has to give. */
  freeMemoryMb: () => number;
  totalMemoryMb: number;
  /** MiB that the disk with the home has to give. */
  freeDiskMb: () => number;
  idle: {
    /** Seconds without use after which a sandbox is paused that a request wakes again; 0 = never. */
    pauseAfterSeconds: number;
    /** End of the last traffic, milliseconds since the epoch (0 = none yet); undefined while there is some. */
    quietSince: (sandboxId: string) => number | undefined;
    /** Processor time of a process, milliseconds. */
    cpuMs: (pid: number) => number;
  };
  /** Called whenever the address of a sandbox stops being valid: cut what is connected to it. */
  onRouteChange: (sandboxId: string) => void;
  /** The machine's part of the doctor's report. */
  inspectHost: () => Promise<DoctorFinding[]>;
  clock: Clock;
  logger: Logger;
}

/** The options and the stores that they imply, shared by the parts of the orchestrator. */
export interface Context extends OrchestratorOptions {
  database: DatabaseSync;
  templateStore: TemplateStore;
  sandboxStore: SandboxStore;
  layerStore: LayerStore;
  layers: LayerTable;
  ledger: Ledger;
}
