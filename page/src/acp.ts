// The part of the Agent Client Protocol (v1) that the page speaks, with Crow's extensions (docs/extensions.md).
// What comes over the wire is Crow's; fields that a version may lack are optional, and the page does without them.

export type SessionId = string;

export interface TextContent {
  type: "text";
  text: string;
}
export interface ImageContent {
  type: "image";
  data: string;
  mimeType: string;
}
export interface ResourceContent {
  type: "resource";
  resource: { uri: string; text?: string; blob?: string; mimeType?: string };
}
export interface ResourceLink {
  type: "resource_link";
  uri: string;
  name: string;
}
export interface AudioContent {
  type: "audio";
  data: string;
  mimeType: string;
}
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceContent | ResourceLink;

/** One changed block: [oldOffset, oldCount, newOffset, newCount], lines from 0 in the item's own two texts. */
export type Change = [number, number, number, number];

/** Where an item's texts begin in the file, and what differs between them. */
export interface DiffFacts {
  oldLine: number;
  newLine: number;
  changes: Change[];
}

export interface DiffItem {
  type: "diff";
  path: string;
  oldText?: string | null;
  newText: string | null;
  _meta?: { crow?: { diff?: DiffFacts } } | null;
}

/** An item of `_crow/changes` or `_crow/undo`: a diff, of a file that may not be there before or after. */
export interface FileDiff {
  path: string;
  oldText: string | null;
  newText: string | null;
  diff?: DiffFacts;
}

export type ToolContent =
  { type: "content"; content: ContentBlock } | DiffItem | { type: "terminal"; terminalId: string };

export type CallStatus = "pending" | "in_progress" | "completed" | "failed";

export interface ToolCallFields {
  toolCallId: string;
  title?: string | null;
  name?: string | null;
  kind?: string | null;
  status?: CallStatus | null;
  content?: ToolContent[] | null;
  locations?: { path: string; line?: number | null }[] | null;
  rawInput?: unknown;
  rawOutput?: unknown;
  _meta?: CallMeta | null;
}

export interface CallMeta {
  crow?: { answeredBy?: string; allowed?: boolean; seconds?: number; input?: "open" | "closed"; partial?: boolean };
  terminal_info?: { terminal_id: string; cwd: string };
  terminal_output?: { terminal_id: string; data: string };
  terminal_exit?: { terminal_id: string; exit_code: number | null; signal: string | null };
}

export interface PlanEntry {
  content: string;
  priority: string;
  status: "pending" | "in_progress" | "completed";
}

export interface ConfigChoice {
  name: string;
  value?: string;
  description?: string;
  group?: string;
  options?: ConfigChoice[];
}
export interface ConfigOption {
  type: "select";
  id: string;
  name: string;
  currentValue: string;
  options: ConfigChoice[];
  description?: string;
  category?: string;
}
export interface SessionModes {
  currentModeId: string;
  availableModes: { id: string; name: string; description?: string }[];
}

export interface Command {
  name: string;
  description: string;
  input?: { hint: string } | null;
}

interface Chunk {
  content: ContentBlock;
  messageId?: string;
}

export interface Notice {
  severity: string;
  title: string;
  description?: string | null;
  _meta?: { crow?: { isWait?: boolean; retryIn?: number }; steering?: { leftOver?: LeftOver[] } } | null;
}

export type Update =
  | ({ sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" } & Chunk)
  | ({ sessionUpdate: "tool_call" | "tool_call_update" } & ToolCallFields)
  | { sessionUpdate: "plan"; entries: PlanEntry[] }
  | { sessionUpdate: "usage_update"; used: number; size: number; cost?: { amount: number; currency: string } | null }
  | { sessionUpdate: "available_commands_update"; availableCommands: Command[] }
  | { sessionUpdate: "current_mode_update"; currentModeId: string }
  | { sessionUpdate: "config_option_update"; configOptions: ConfigOption[] }
  | { sessionUpdate: "session_info_update"; title?: string | null; updatedAt?: string | null }
  | {
      sessionUpdate: "compaction_update";
      compactionId: string;
      status: "in_progress" | "completed" | "failed" | "cancelled";
      summary?: ContentBlock[] | null;
      error?: string | null;
    }
  | ({ sessionUpdate: "notice" } & Notice);

export interface PermissionOption {
  optionId: string;
  name: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
}
export interface PermissionRequest {
  sessionId: SessionId;
  toolCall: ToolCallFields;
  options: PermissionOption[];
  _meta?: { crow?: { partial?: boolean } } | null;
}
export interface PermissionAnswer {
  outcome: { outcome: "selected"; optionId: string } | { outcome: "cancelled" };
  _meta?: { crow: { accepted?: number[]; input?: "open" } };
}

/** A field of a form: the part of JSON schema that elicitation allows. */
export interface FormField {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  enumNames?: string[];
  oneOf?: { const: string; title?: string; description?: string }[];
  anyOf?: { const: string; title?: string }[];
  items?: FormField;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}
export interface FormRequest {
  sessionId: SessionId;
  message: string;
  mode?: string;
  requestedSchema?: { properties: Record<string, FormField>; required?: string[] };
}

export interface InitializeAnswer {
  protocolVersion: number;
  agentInfo: { name: string; title?: string; version: string };
  authMethods: { id: string; name: string; description?: string; type?: string; args?: string[] }[];
  agentCapabilities: {
    loadSession?: boolean;
    promptCapabilities?: { image?: boolean; audio?: boolean; embeddedContext?: boolean };
    sessionCapabilities?: Record<string, unknown>;
  };
  _meta?: { crow?: { token?: string; cwd?: string; home?: string; page?: string } } | null;
}

export interface OpenedAnswer {
  sessionId?: SessionId;
  modes?: SessionModes | null;
  configOptions?: ConfigOption[] | null;
}

/** A message into a turn that ended before the model got it. */
export interface LeftOver {
  messageId: string;
  text: string;
}

export interface SessionInfo {
  sessionId: SessionId;
  cwd: string;
  title?: string | null;
  updatedAt?: string | null;
}

export type LiveState = "running" | "asks" | "idle" | "saved" | "deleted";

/** A row of `_crow/inbox`. */
export interface InboxRow extends SessionInfo {
  state: LiveState;
  asks: number;
  since?: string;
  by?: string;
  process?: number;
}

/** `_crow/released`: the process that ran the session has ended. */
export interface ReleasedNotification {
  sessionId: SessionId;
  reason?: string;
}

/** `_crow/state`. */
export interface StateNotification {
  sessionId: SessionId;
  state: "running" | "asks" | "idle";
  turn?: string;
  by?: string;
  faces?: string[];
  ended?: { turn: string; stopReason?: string; error?: string };
}

/** A file of `_crow/changes`. */
export interface ChangedFile {
  path: string;
  kind: "added" | "modified" | "deleted";
  added: number;
  removed: number;
  turn?: string;
  /** Why it cannot be compared now. */
  problem?: string;
}

/** `_crow/output`. */
export interface OutputPart {
  data: string;
  offset: number;
  next: number;
  total: number;
  running: boolean;
}

/** Every request that the page makes: what it is given and what is answered. */
export interface Methods {
  initialize: { params: object; result: InitializeAnswer };
  authenticate: { params: { methodId: string }; result: object };
  "session/new": { params: { cwd: string; mcpServers: [] }; result: OpenedAnswer & { sessionId: SessionId } };
  "session/load": { params: { sessionId: SessionId; cwd: string; mcpServers: [] }; result: OpenedAnswer };
  "session/list": { params: { cwd?: string; cursor?: string }; result: { sessions: SessionInfo[]; nextCursor?: string | null } };
  "session/close": { params: { sessionId: SessionId }; result: object };
  "session/delete": { params: { sessionId: SessionId }; result: object };
  "session/prompt": { params: { sessionId: SessionId; prompt: ContentBlock[]; _meta?: object }; result: PromptAnswer };
  "session/set_mode": { params: { sessionId: SessionId; modeId: string }; result: object };
  "session/set_config_option": {
    params: { sessionId: SessionId; configId: string; value: string };
    result: { configOptions: ConfigOption[] };
  };
  "_session/steering": {
    params: { sessionId: SessionId; prompt: ContentBlock[] };
    result: { outcome: "injected" | "promptRequired"; _meta?: { steering?: { messageId?: string; message?: string } } };
  };
  "_crow/ping": { params: object; result: object };
  "_crow/inbox": { params: object; result: { sessions: InboxRow[] } };
  "_crow/search": {
    params: { query: string; limit?: number; cursor?: string };
    result: {
      matches: (SessionInfo & { where: "title" | "text"; parts: { text: string; hit: boolean }[] })[];
      nextCursor?: string;
      indexing?: boolean;
      unread?: number;
      sessions?: number;
    };
  };
  "_crow/files": {
    params: { sessionId: SessionId; query: string; limit?: number };
    result: { files: { path: string; uri: string; isFolder: boolean }[] };
  };
  "_crow/changes": {
    params: { sessionId: SessionId; path?: string };
    result: { files?: ChangedFile[]; items?: FileDiff[] };
  };
  "_crow/undo": {
    params: { sessionId: SessionId };
    result: {
      turn?: string | null;
      prompt?: string;
      files: { path: string; kind?: string; items?: FileDiff[]; blocked?: string }[];
      /** What is not taken back, such as what commands did. */
      remarks?: string[];
    };
  };
  "_crow/output": {
    params: { sessionId: SessionId; toolCallId: string; offset?: number; limit?: number };
    result: OutputPart;
  };
  "_crow/input": { params: { sessionId: SessionId; toolCallId: string; data: string }; result: object };
  "_crow/input/open": { params: { sessionId: SessionId; open: boolean }; result: object };
  "_crow/input/size": {
    params: { sessionId: SessionId; toolCallId: string; columns: number; rows: number };
    result: object;
  };
  "_crow/stop": { params: { sessionId: SessionId; toolCallId: string }; result: object };
}

export interface PromptAnswer {
  stopReason: string;
  _meta?: {
    crow?: { leftOpen?: string };
    steering?: { leftOver?: LeftOver[] };
  } | null;
}

/** What an error that answers a prompt may carry. */
export interface PromptErrorData {
  steering?: { leftOver?: LeftOver[] };
}
