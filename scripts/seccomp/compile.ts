/** @module Compiles filters to classic BPF programs for the kernel: seccomp(2), linux/bpf_common.h. */
import { CALL_NUMBERS, type CallName } from './call-numbers.ts';
import { type Condition, type Filter, LAST_COMMON_CALL, type Rule } from './rules.ts';

/** Supported architectures. `audit` is AUDIT_ARCH_* of linux/audit.h; `column` is the index in {@link CALL_NUMBERS}. */
export const ARCHITECTURES = {
  x64: { audit: 0xc000_003e, column: 0 },
  arm64: { audit: 0xc000_00b7, column: 1 },
} as const;

/** Architecture, named as in `process.arch`. */
export type Architecture = keyof typeof ARCHITECTURES;

/** One `struct sock_filter`. */
export type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** Opcodes, such as BPF_LD | BPF_W | BPF_ABS for LOAD_WORD. */
const CODES = {
  LOAD_WORD: 0x20,
  AND: 0x54,
  JUMP: 0x05,
  JUMP_IF_EQUAL: 0x15,
  JUMP_IF_AT_LEAST: 0x35,
  RETURN: 0x06,
} as const;

/** SECCOMP_RET_* values. The low 16 bits of `refuse` and `absent` hold the error number: EPERM (1) and ENOSYS (38). */
export const ACTIONS = {
  allow: 0x7fff_0000,
  refuse: 0x0005_0001,
  absent: 0x0005_0026,
  kill: 0x8000_0000,
} as const;

/**
 * Offsets in `struct seccomp_data`. Both architectures are little-endian, so the low half of an argument comes first.
 */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ARGUMENTS_AT = 16;

/** Bit that marks a call of the x32 ABI, which no tool uses. */
const X32_BIT = 0x4000_0000;

/** The calls from `from` up to the start of the next range. */
interface Range {
  readonly from: number;
  readonly rule: Rule;
}

/** Compiles a filter for one architecture. The program kills a process of any other architecture. */
export function compile(filter: Filter, architecture: Architecture): Instruction[] {
  const { audit } = ARCHITECTURES[architecture];
  return [
    [CODES.LOAD_WORD, 0, 0, ARCHITECTURE_AT],
    [CODES.JUMP_IF_EQUAL, 1, 0, audit],
    [CODES.RETURN, 0, 0, ACTIONS.kill],
    [CODES.LOAD_WORD, 0, 0, NUMBER_AT],
    ...search(listRanges(filter, architecture)),
  ];
}

/** Encodes a program as bytes in little-endian order, which both architectures use. */
export function encode(program: readonly Instruction[]): Buffer {
  return Buffer.concat(
    program.map(([code, ifTrue, ifFalse, value]) => {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt16LE(code, 0);
      bytes.writeUInt8(ifTrue, 2);
      bytes.writeUInt8(ifFalse, 3);
      bytes.writeUInt32LE(value >>> 0, 4);
      return bytes;
    }),
  );
}

/** Returns the rule for a call number: the filter's own, or its default for other or newer calls. */
export function ruleFor(number: number, filter: Filter, architecture: Architecture): Rule {
  if (number >= X32_BIT) return 'refuse';
  const { column } = ARCHITECTURES[architecture];
  const name = Object.entries(CALL_NUMBERS).find(([, numbers]) => numbers[column] === number)?.[0];
  const rule = filter.calls[name as CallName];
  return rule ?? (number > LAST_COMMON_CALL ? filter.newer : filter.others);
}

/** Returns the rules of all numbers in order, with adjacent numbers of the same rule merged. */
function listRanges(filter: Filter, architecture: Architecture): Range[] {
  const { column } = ARCHITECTURES[architecture];
  const last = Math.max(LAST_COMMON_CALL, ...Object.values(CALL_NUMBERS).map((row) => row[column] ?? 0));
  const starts = [...Array(last + 2).keys(), X32_BIT];
  return starts
    .map((from): Range => ({ from, rule: ruleFor(from, filter, architecture) }))
    .filter(({ rule }, at, all) => rule !== all[at - 1]?.rule);
}

/**
 * Generates a binary search for the range. When the kernel loads a filter, it evaluates the filter once for every call
 * number, so a linear search would be slow.
 */
function search(ranges: readonly Range[]): Instruction[] {
  const [first] = ranges as [Range];
  if (ranges.length === 1) return returnAction(first.rule);
  const middle = ranges.length >> 1;
  const below = search(ranges.slice(0, middle));
  const { from } = ranges[middle] as Range;
  return [
    // A conditional jump can skip at most 255 instructions, an unconditional one any number.
    [CODES.JUMP_IF_AT_LEAST, 0, 1, from],
    [CODES.JUMP, 0, 0, below.length],
    ...below,
    ...search(ranges.slice(middle)),
  ];
}

/** Generates instructions that decide a call: every path ends in a return. */
function returnAction(rule: Rule): Instruction[] {
  if (typeof rule === 'string') return [[CODES.RETURN, 0, 0, ACTIONS[rule]]];
  const otherwise = rule.action === 'allow' ? 'refuse' : 'allow';
  return [
    ...rule.when.flatMap((conditions) => whenAll(conditions, [[CODES.RETURN, 0, 0, ACTIONS[rule.action]]])),
    [CODES.RETURN, 0, 0, ACTIONS[otherwise]],
  ];
}

/** Generates instructions that run `then` if all conditions are true, and skip it otherwise. */
function whenAll(conditions: readonly Condition[], then: readonly Instruction[]): Instruction[] {
  const [first, ...others] = conditions;
  if (!first) return [...then];
  const rest = whenAll(others, then);
  return [...load(first), ...compare(first), [CODES.JUMP, 0, 0, rest.length], ...rest];
}

/** Generates instructions that load an argument and apply the mask. */
function load({ argument, half, mask }: Condition): Instruction[] {
  const at = ARGUMENTS_AT + 8 * argument + (half === 'high' ? 4 : 0);
  return [[CODES.LOAD_WORD, 0, 0, at], ...(mask === undefined ? [] : [[CODES.AND, 0, 0, mask] as const])];
}

/** Generates a comparison that skips the next instruction if the condition is true. */
function compare(condition: Condition): Instruction[] {
  const values = 'oneOf' in condition ? condition.oneOf : condition.noneOf;
  return [
    ...values.map((value, at): Instruction => [CODES.JUMP_IF_EQUAL, values.length - at, 0, value]),
    // A matching value jumps past this instruction.
    ...('oneOf' in condition ? [] : [[CODES.JUMP, 0, 0, 1] as const]),
  ];
}
