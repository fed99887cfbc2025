// Starts the page.

import { render } from "preact";
import { App } from "./app";
import { crow } from "./connection";
import { startFocus } from "./focus";
import { startKeys } from "./keys";
import { listenForQuestions } from "./model/questions";
import { startSessions } from "./model/sessions";
import { startNotify } from "./notify";
import "./page.css";
import "./widgets.css";
import { startRoute } from "./route";
import { startTheme } from "./theme";
import { takeLink } from "./token";
import { prefetchSeldom } from "./widgets";

takeLink();
startTheme();
listenForQuestions();
startSessions();
startRoute();
startNotify();
startKeys();
startFocus();
const root = document.getElementById("page");
if (root) render(<App />, root);
crow.start();
prefetchSeldom();
