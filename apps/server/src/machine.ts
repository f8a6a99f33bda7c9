/** The machine under the server: launcher, kernel, accelerator, driver. */
import { ensureLauncher } from '@aenv/linux';
import { aenvdGuests, type DoctorFinding } from '@aenv/orchestrator';
import { type Accelerator, createQemuDriver, probeAccelerator } from '@aenv/vmm';
import { inspectHost, refuseUnfit } from './doctor.ts';
import { AENVD_BINARY, DEFAULT_KERNEL_DIRECTORY, installMachineFiles } from './machine-files.ts';
import type { OpenMachine } from './server.ts';

function acceleratorFinding(accelerator: Accelerator, reason: string): DoctorFinding {
  if (accelerator === 'kvm') return { check: 'accelerator', status: 'ok', detail: `kvm: ${reason}` };
  return {
    check: 'accelerator',
    status: 'warn',
    detail: `tcg (emulation): ${reason}`,
    remedy: 'Sandboxes work, but slower. Use a host with hardware virtualisation for speed.',
  };
}

/** `host_missing_tool` or `host_unsupported` say what this machine lacks, and what to do. */
export const openMachine: OpenMachine = async (config, logger) => {
  const { home } = config;
  const kernelDirectory = config.kernelDirectory || DEFAULT_KERNEL_DIRECTORY;
  refuseUnfit(await inspectHost({ home, kernelDirectory }));
  const files = await installMachineFiles({ home, kernelDirectory, aenvd: AENVD_BINARY });
  const launcher = await ensureLauncher({ home, logger: logger.child({ part: 'launcher' }) });
  try {
    const probed =
      config.accelerator === 'auto'
        ? await probeAccelerator({ launcher, kernel: files.kernel, home })
        : { accelerator: config.accelerator as Accelerator, reason: 'set in the configuration' };
    const accelerator = acceleratorFinding(probed.accelerator, probed.reason);
    logger.info({ accelerator: probed.accelerator, reason: probed.reason }, 'accelerator chosen');
    return {
      launcher,
      driver: createQemuDriver({ launcher, accel: probed.accelerator, logger: logger.child({ part: 'vmm' }) }),
      guests: aenvdGuests,
      parts: { ...files, kernelArguments: [] },
      inspectHost: () => inspectHost({ home, kernelDirectory, accelerator }),
    };
  } catch (error) {
    await launcher.close();
    throw error;
  }
};
