// The parts of the page that are not drawn at first, in one file, which is fetched as soon as the page is drawn: many small files
// would cost the first load more than they spare it.

export { ChangesPanel } from "./changes/panel";
export { Copying } from "./view/copying";
export { FormView } from "./view/form";
export { Help } from "./view/help";
export { Meters } from "./view/meters";
export { NewSession } from "./view/new_session";
export { Palette } from "./view/palette";
export { Plan } from "./view/plan";
export { Setup } from "./view/setup";
export { TurnEnd } from "./view/undo";
export { UndoDialog } from "./view/undo_dialog";
export { Waiting } from "./view/waiting";
