// What tools that run commands or open files judge their calls with. An entry of its own (`@oxbow/core/permissions`), because
// programs without such tools need not load it.
export {
  analyseCommand,
  commandMatches,
  commandMentions,
  type Judgement,
  type JudgeOptions,
  judgeCommand,
  suggestRules,
} from './commands/judge.ts'
export { commandPatternProblem } from './commands/rule.ts'
export type { AnalyseOptions, Analysis, Construct, Note, Reason, SimpleCommand } from './commands/types.ts'
export { checkPath, type PathCheck, type PathOptions, type PathReason } from './paths/check-path.ts'
