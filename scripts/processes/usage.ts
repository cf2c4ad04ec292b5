/**
 * @module Reads CPU time and memory of the machine, a process or a process tree from /proc: see
 * proc(5).
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { eventually } from '../../test/helpers/util.ts';
import type { Probe } from './probe.ts';

/** Path of the module that measures a process from inside. */
export const PROBE_MODULE: string = new URL('./probe.ts', import.meta.url).pathname;

/**
 * Makes a process that loaded {@link PROBE_MODULE} write its measurements to this file, and reads
 * them.
 */
export async function readProbe(pid: number, file: string): Promise<Probe> {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  return JSON.parse(await eventually(() => existsSync(file) && readFileSync(file, 'utf8'))) as Probe;
}

/**
 * Processor time of the work of {@link slowness} on the machine where bounds of processor time were
 * measured, in ms.
 */
const REFERENCE_MS = 100;

/**
 * Returns how much slower than {@link REFERENCE_MS} this machine is at the moment, at least 1, by
 * some work of 0.1 seconds.
 */
export function slowness(): number {
  const before = process.cpuUsage();
  let value = Array.from({ length: 10_000 }, (_, at) => ({ at, name: `file ${at}.jpg` }));
  for (let round = 0; round < 50; round += 1) value = JSON.parse(JSON.stringify(value));
  const { user, system } = process.cpuUsage(before);
  return Math.max(1, (user + system) / 1000 / REFERENCE_MS);
}

/** Clock ticks per second in /proc: 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/** Lists all processes. */
export const listProcesses = (): number[] => readdirSync('/proc').map(Number).filter(Number.isInteger);

/** Lists a process and its descendants. */
export const listTree = (root: number): number[] => readTree(root).map(({ pid }) => pid);

function readTree(root: number): ProcessEntry[] {
  const all = listProcesses().flatMap((pid) => readEntry(pid) ?? []);
  const tree = all.filter(({ pid }) => pid === root);
  for (const entry of tree) tree.push(...all.filter(({ parent }) => parent === entry.pid));
  return tree;
}

/**
 * Returns the CPU time in ms since boot of everything but this process. The process tree alone
 * would be incomplete: it lacks processes that have ended and whose parent did not wait for them.
 */
export function othersCpuMs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  const [, user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = line
    .split(/\s+/)
    .map(Number);
  const own = process.cpuUsage();
  const all = ((user + nice + system + interrupts + softInterrupts) * 1000) / TICKS_PER_SECOND;
  return all - (own.user + own.system) / 1000;
}

/** Returns the CPU time in ms that this process and all that it starts take for some work. */
export async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const before = cpuMsOfTree(process.pid).descendants;
  const own = process.cpuUsage(); // without the time that reading /proc takes
  await work();
  const { user, system } = process.cpuUsage(own);
  return (user + system) / 1000 + cpuMsOfTree(process.pid).descendants - before;
}

/**
 * Returns the CPU time in ms of a process, and that of all processes that it has started, with
 * those that have ended.
 */
export function cpuMsOfTree(root: number): { readonly own: number; readonly descendants: number } {
  const tree = readTree(root);
  const own = tree.find(({ pid }) => pid === root)?.cpuMs ?? 0;
  return { own, descendants: tree.reduce((sum, { cpuMs, endedMs }) => sum + cpuMs + endedMs, -own) };
}

/**
 * Returns the memory in bytes of a process: resident pages, and those of them without a file behind
 * them.
 */
export function memoryOf(pid: number): { readonly resident: number; readonly private: number } {
  const [, resident = 0, shared = 0] = readProc(pid, 'statm').split(' ').map(Number);
  return { resident: resident * PAGE_BYTES, private: (resident - shared) * PAGE_BYTES };
}

/**
 * Returns the memory in bytes of a process and its descendants. Their private memory is nearly what
 * would be free without the tree.
 */
export function memoryOfTree(root: number): ReturnType<typeof memoryOf> {
  const all = listTree(root).map(memoryOf);
  const sum = (of: 'resident' | 'private'): number => all.reduce((total, one) => total + one[of], 0);
  return { resident: sum('resident'), private: sum('private') };
}

/** A process. */
interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** Its CPU time in ms, and that of its children that have ended. */
  readonly cpuMs: number;
  readonly endedMs: number;
}

/** Returns undefined if the process has ended. */
function readEntry(pid: number): ProcessEntry | undefined {
  const stat = readProc(pid, 'stat');
  if (!stat) return undefined;
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const at = (field: number): number => fields[field] ?? 0;
  const toMs = (ticks: number): number => (ticks * 1000) / TICKS_PER_SECOND;
  return { pid, parent: at(1), cpuMs: toMs(at(11) + at(12)), endedMs: toMs(at(13) + at(14)) };
}

/** Kills a process. Returns whether it has not ended before. */
export function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** Reads a file about a process; nothing if it has ended. */
function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    return '';
  }
}
